"""The most memory that training takes, measured and announced, each in a process of its own."""

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
from tracer.training.memory.estimate import estimate, resident
from tracer.training.setup import batches, begin, opened
from tracer.training.step import step

T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """`function(…)` in a new process, whose memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        try:
            return process.submit(function, *arguments).result()
        except BrokenProcessPool:
            asked = f"{function.__name__}({', '.join(map(str, arguments))})"
            raise UserError(
                f"the process that measured {asked} was killed: is there enough memory?"
            ) from None


def plain(model: str, count: int) -> int:
    """Bytes at the peak of released-style TRACER."""
    student = load(model)
    images = (pixels(student, count).float() / 255 - student.mean) / student.std
    recipe = Plain(student.clip, open_clip.loss.ClipLoss())
    for _ in range(2):
        recipe.tracer(images, student.tokeniser.tokeniser(captions(count)))
    return resident()


def ours(model: str, count: int, chunk: int | None = None) -> int:
    """Bytes at the peak of our steps; a small one comes first, which leaves Adam's state behind."""
    student = load(model)
    state = state_of(method("tracer").stages[0], student, chunk)
    for size in (chunk or count, count):
        step(state, batch_of(student, size))
    return resident()


def announced(model: str, count: int, chunk: int | None = None) -> int:
    """What `tracer train --dry-run` says that a run will take."""
    return estimate(_planned(model, count, chunk)).total


def taken(model: str, count: int, chunk: int | None = None) -> int:
    """What that run takes, pretrained weights and data included."""
    made = _planned(model, count, chunk)
    student = opened(made)
    pretrained = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    (state,) = begin(made, made.method.stages[0], 2, student, pretrained, World("cpu", "fp32"))
    data = batches(made, state, 0)
    for number in range(2):
        step(state, data[number])
    return resident()


def _planned(model: str, count: int, chunk: int | None) -> Plan:
    settings: dict[str, Any] = {"data": "digits", "pretrained": "none", "augment": "none", "steps": 2}
    return plan(Experiment(method="tracer", model=model, batch=count, chunk=chunk, **settings))
