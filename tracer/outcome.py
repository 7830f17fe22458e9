"""What came out: the task and what was to be retained, before and after, in one file."""

from __future__ import annotations

from typing import Any

from tracer.atomic import write_json
from tracer.evaluate import held_out_accuracy, predict
from tracer.model import Student
from tracer.parallel import World
from tracer.plan import Plan, prompts_for
from tracer.run import Run


def outcome(plan: Plan, run: Run, world: World) -> dict[str, Any]:
    """Measure the pretrained model and the result alike, and write `result.json`, which ends the run."""
    scores = {"before": _scores(plan, run.student("pretrained"), world)}
    scores["after"] = _scores(plan, run.student("result"), world)
    write_json(run.folder / "result.json", scores)
    return scores


def _scores(plan: Plan, student: Student, world: World) -> dict[str, Any]:
    world.place(student)
    accuracy = held_out_accuracy(student, plan.held_out, plan.templates, world, head=student.head is not None)
    retained = {data.name: predict(student, data, prompts_for(data), world).accuracy for data in plan.retain}
    return {"accuracy": accuracy, "retain": retained}
