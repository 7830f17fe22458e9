"""Hold out a part of the data, and align labels between data sets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples


def hold_out(examples: Examples, share: float = 0.02, seed: int = 0) -> tuple[Examples, Examples]:
    """Split into examples for training and held-out ones: `share` of each class, at least one if it has two.

    Examples are chosen by a hash of their ids, so that reordering or adding a few changes the split little.
    """
    if not 0 <= share < 1:
        raise UserError(f"the held-out share {share} must be at least 0 and less than 1, such as 0.02")
    held = np.zeros(len(examples), bool)
    if share > 0:
        hashes = np.array([_hash(each, seed) for each in examples.ids], np.uint64)
        for label in np.unique(examples.labels):
            members = np.flatnonzero(examples.labels == label)
            held[members[np.argsort(hashes[members])[: _count(len(members), share)]]] = True
    return examples.take(np.flatnonzero(~held)), examples.take(np.flatnonzero(held))


def align_labels(examples: Examples, classes: Sequence[str]) -> Examples:
    """The same examples with labels that index `classes`, such as those of the training set."""
    label_of = {name: i for i, name in enumerate(classes)}
    for name in examples.classes:
        if name not in label_of:
            raise unknown(f"class in {examples.name}", name, classes)
    table = np.array([*(label_of[name] for name in examples.classes), -1], np.int64)
    return replace(examples, labels=table[examples.labels], classes=tuple(classes))


def _count(members: int, share: float) -> int:
    """How many examples of a class are held out: at least one if there are two, never all."""
    return min(max(1, round(share * members)), members - 1)


def _hash(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}\0{name}".encode(errors="replace"), digest_size=8).digest())
