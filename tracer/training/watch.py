"""The accuracy on held-out images by which a run is watched: before training, a few times in it, and at its end."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.core.dynamics import distance
from tracer.evaluation.measured import evenly_spaced, held_out_hits, watched
from tracer.evaluation.predict import Scorer
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.runs.run import Run
from tracer.training.step import State


class Watch:
    """Logs the accuracy on the same held-out images throughout a run, in short runs a part of them."""

    def __init__(self, plan: Plan, run: Run, world: World, workers: int) -> None:
        self.plan, self.run, self.world, self.workers = plan, run, world, workers
        self.indices = watched(plan.held_out, plan.steps * plan.batch)
        self.prompts = few(plan.templates, len(plan.train.classes))

    def evaluate(self, state: State, step: int) -> float:
        """The student's accuracy, with few prompts; logged with the distance between student and teacher."""
        scorer = Scorer(state.student, self.world, self.plan.train.classes, self.workers)
        features = scorer.embed(self.plan.held_out.take(self.indices))
        hits = held_out_hits(scorer, features, self.prompts)
        accuracy, gap = sum(hits) / len(hits), self.weight_gap(state)
        self.run.recorder.log(step, "held_out", accuracy=accuracy, images=len(self.indices), **gap)
        return accuracy

    def log_hits(self, step: int, hits: Sequence[bool], **more: float) -> float:
        """The accuracy of these answers for the whole held-out set on the images that are watched, logged."""
        accuracy = sum(hits[i] for i in self.indices) / len(self.indices)
        self.run.recorder.log(step, "held_out", accuracy=accuracy, images=len(self.indices), **more)
        return accuracy

    def weight_gap(self, state: State) -> dict[str, float]:
        """The distance between student and teacher, if there is one."""
        self.world.reshard(state.student)
        return {"weight_gap": float(distance(state.student, state.shadow.model))} if state.shadow else {}


def few(templates: Sequence[str], classes: int) -> Sequence[str]:
    """Evenly spaced templates, about 250 prompts and at least eight a class: enough to watch a run."""
    indices = evenly_spaced(len(templates), max(8, 250 // max(1, classes)))
    return [templates[int(i)] for i in indices]
