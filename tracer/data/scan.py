"""Decode every image before training starts; unreadable ones are reported and left out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from tracer.core.errors import UserError
from tracer.data.check import validate
from tracer.data.encoded import BROKEN, content, decode, reason
from tracer.data.examples import Examples

TOLERATED = 0.01  # share of unreadable images; more of them point to another problem
THREADS = 8
BLOCK = 1024  # images between two reports of progress

Progress = Callable[[int, int], None]  # images done, images in total


def scan(examples: Examples, strict: bool = False, progress: Progress | None = None) -> Examples:
    """The examples whose images can be decoded; `Examples.skipped` lists the others.

    Raises UserError for data that cannot be trained on, for any unreadable image if `strict`, and always if more
    than 1 % are unreadable.
    """
    validate(examples)
    broken = _find_broken(examples, progress)
    if not broken:
        return examples
    names = tuple(f"{examples.ids[i]}: {why}" for i, why in broken.items())
    if strict or len(broken) > TOLERATED * len(examples):
        limit = "" if strict else f", more than {TOLERATED:.0%}"
        shown = "".join(f"\n  {name}" for name in names[:5]) + ("\n  …" if len(names) > 5 else "")
        share = f"{len(broken)} of {len(examples)} images ({len(broken) / len(examples):.1%}{limit})"
        raise UserError(f"{share} in {examples.name} cannot be read:{shown}")
    readable = np.array([i for i in range(len(examples)) if i not in broken])
    return replace(examples.take(readable), skipped=(*examples.skipped, *names))


def _find_broken(examples: Examples, progress: Progress | None) -> dict[int, str]:
    """The reason for each image that cannot be read, by index."""
    broken: dict[int, str] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(examples), BLOCK):
            block = range(start, min(start + BLOCK, len(examples)))
            reasons = pool.map(lambda i: _problem(examples, i), block)
            broken |= {i: why for i, why in zip(block, reasons, strict=True) if why}
            if progress is not None:
                progress(block.stop, len(examples))
    return broken


def _problem(examples: Examples, index: int) -> str:
    """Why an image cannot be read; empty if it can. Pixels in memory are not checked."""
    try:
        encoded = content(examples.images, index)
        if encoded is not None:
            decode(encoded)
    except BROKEN as error:
        return reason(error)
    return ""
