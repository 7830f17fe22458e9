"""A part of the data that training never sees."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples


def hold_out(examples: Examples, share: float = 0.02, seed: int = 0) -> tuple[Examples, Examples]:
    """The examples to train on and those held out: `share` of each class, at least one where it has two.

    The hash of an example's id decides, so that another order, or a few examples more, changes little.
    """
    if not 0 <= share < 1:
        raise UserError(f"the held-out share {share} must be at least 0 and less than 1, such as 0.02")
    held = np.zeros(len(examples), bool)
    if share > 0:
        luck = np.array([_luck(each, seed) for each in examples.ids], np.uint64)
        for label in np.unique(examples.labels):
            members = np.flatnonzero(examples.labels == label)
            held[members[np.argsort(luck[members])[: _count(len(members), share)]]] = True
    return examples.take(np.flatnonzero(~held)), examples.take(np.flatnonzero(held))


def aligned(examples: Examples, classes: Sequence[str]) -> Examples:
    """The same examples, their labels counted in `classes`: so a held-out set joins its training set."""
    place = {name: i for i, name in enumerate(classes)}
    for name in examples.classes:
        if name not in place:
            raise unknown(f"class in {examples.name}", name, classes)
    table = np.array([*(place[name] for name in examples.classes), -1], np.int64)
    return replace(examples, labels=table[examples.labels], classes=tuple(classes))


def _count(members: int, share: float) -> int:
    """How many of a class are held out: never all of it."""
    return min(max(1, round(share * members)), members - 1)


def _luck(each: str, seed: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}\0{each}".encode(errors="replace"), digest_size=8).digest())
