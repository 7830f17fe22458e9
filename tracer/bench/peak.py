"""The most memory a process takes, each measured in a process of its own."""

from __future__ import annotations

import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tracer.bench.plain import Plain
from tracer.bench.steps import batch_of, captions, pixels, state_of
from tracer.clip import open_clip
from tracer.method import method
from tracer.model import load
from tracer.step import step


def peak(way: str, model: str, count: int, chunk: int | None = None, steps: int = 2) -> int:
    """Bytes at the peak of `steps` TRACER steps by a "plain" recipe, or "ours"."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_taken, way, model, count, chunk, steps).result()


def _taken(way: str, model: str, count: int, chunk: int | None, steps: int) -> int:
    student = load(model)
    if way == "plain":
        plain = Plain(student.clip, open_clip.loss.ClipLoss())
        images = (pixels(student, count).float() / 255 - student.mean) / student.std
        tokens = student.tokeniser.tokeniser(captions(count))
        for _ in range(steps):
            plain.tracer(images, tokens)
    else:
        state, batch = state_of(method("tracer").stages[0], student, chunk), batch_of(student, count)
        for _ in range(steps):
            step(state, batch)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
