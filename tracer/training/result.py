"""The weights that a run ends with: student, teacher and result."""

from __future__ import annotations

from functools import partial

from torch import nn

from tracer.core.weights import Weights
from tracer.data.examples import Pixels
from tracer.methods.base import Trained
from tracer.models.student import read_weights
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.runs.run import Run
from tracer.training.checkpoint import CheckpointWriter


def merged_weights(plan: Plan, world: World, student: nn.Module) -> Weights:
    """The full weights of a student or teacher, with those of its adapter added."""
    weights = world.full_tensors(student.state_dict())
    return weights if plan.adapter is None else plan.adapter.merge(weights)


def keep_result(
    plan: Plan, run: Run, world: World, trained: Trained, writer: CheckpointWriter | None
) -> Weights:
    """The weights of the result; they and those of student and teacher are written, by the `writer` if there is one.

    The writer does so beside other work: its `finish` waits for the files.
    """
    if writer is None:
        world.on_first_process(lambda: _write(run, trained, plan.method.finish(trained)))
        return read_weights(run.weights_file("result"))
    result = plan.method.finish(trained)
    writer.then(partial(_write, run, trained, result))
    if not all(isinstance(each.images, Pixels) for each in (plan.held_out, *plan.retain)):
        writer.finish()  # the processes that read images are not forked beside its thread
    return result


def _write(run: Run, trained: Trained, result: Weights) -> None:
    run.keep("student", trained.student)
    if trained.teacher is not None:
        run.keep("teacher", trained.teacher)
    run.keep("result", result, like="student" if result is trained.student else None)
