"""A look at all of the data before work starts: what cannot be read is named and left out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from tracer.core.errors import UserError
from tracer.data.check import validate
from tracer.data.encoded import BROKEN, content, decode, reason
from tracer.data.examples import Examples

TOLERATED = 0.01  # share of unreadable images; with more of them something else is wrong
THREADS = 8
BLOCK = 1024

Progress = Callable[[int, int], None]  # images looked at, images in all


def scan(examples: Examples, strict: bool = False, progress: Progress | None = None) -> Examples:
    """The examples whose images can be decoded in full; `Examples.skipped` names the others.

    Refuses data that nothing can be learnt from; any unreadable image if `strict`; over 1 % of them always.
    """
    validate(examples)
    broken = _broken(examples, progress)
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


def _broken(examples: Examples, progress: Progress | None) -> dict[int, str]:
    """Why an image cannot be read, for each such image."""
    broken: dict[int, str] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(examples), BLOCK):
            block = range(start, min(start + BLOCK, len(examples)))
            found = pool.map(lambda i: _why(examples, i), block)
            broken |= {i: why for i, why in zip(block, found, strict=True) if why}
            if progress is not None:
                progress(block.stop, len(examples))
    return broken


def _why(examples: Examples, index: int) -> str:
    try:
        encoded = content(examples.images, index)
        if encoded is not None:
            decode(encoded)
    except BROKEN as error:
        return reason(error)
    return ""
