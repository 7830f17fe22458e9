"""Peak memory of training, measured and estimated, each in its own process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from studies.bench.plain import Plain
from studies.bench.steps import batch_of, captions, pixels, state_of
from tracer.core.errors import UserError
from tracer.methods.base import method
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import load
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.training.estimate import estimate, resident
from tracer.training.setup import first_stage
from tracer.training.step import step

T = TypeVar("T")


def in_new_process(function: Callable[..., T], *arguments: Any) -> T:
    """`function(…)` in a new process, so that its memory is measured alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        try:
            return process.submit(function, *arguments).result()
        except BrokenProcessPool:
            call = f"{function.__name__}({', '.join(map(str, arguments))})"
            raise UserError(f"the process that measured {call} was killed: is there enough memory?") from None


def plain(model: str, count: int) -> int:
    """Peak memory of released-style TRACER, in bytes."""
    student = load(model)
    images = (pixels(student, count).float() / 255 - student.mean) / student.std
    recipe = Plain(student.clip, open_clip.loss.ClipLoss())
    for _ in range(2):
        recipe.tracer(images, student.tokeniser.tokeniser(captions(count)))
    return resident()


def ours(model: str, count: int, chunk: int | None = None) -> int:
    """Peak memory of our steps, in bytes; the first step is small and allocates Adam's state."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student, chunk)
    for size in (chunk or count, count):
        step(state, batch_of(student, size))
    return resident()


def predicted(model: str, count: int, chunk: int | None = None) -> int:
    """The memory that `tracer train --dry-run` predicts."""
    return estimate(_planned(model, count, chunk)).total


def taken(model: str, count: int, chunk: int | None = None) -> int:
    """The memory that this run takes, pretrained weights and data included."""
    experiment = _planned(model, count, chunk)
    learner = first_stage(experiment, World("cpu", "fp32"), 2)
    for number in range(2):
        step(learner.state, learner.batches[number])
    return resident()


def _planned(model: str, count: int, chunk: int | None) -> Plan:
    settings: dict[str, Any] = {"data": "digits", "pretrained": "none", "augment": "none", "steps": 2}
    return plan(Experiment(method="tracer", model=model, batch=count, chunk=chunk, **settings))
