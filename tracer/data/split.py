"""Hold out a part of the data, and align labels between data sets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.classes import match_names
from tracer.data.examples import Examples

SMALL, LARGE = 500, 5_000  # images; below and above them the share does not depend on their number
SMALL_SHARE, LARGE_SHARE = 0.2, 0.1
MOST = 10_000  # held-out images: more would not make the interval of an accuracy noticeably smaller


def default_share(count: int) -> float:
    """The share of `count` images that is held out by default, larger if they are few.

    20 % up to 500 images; from there it falls with the logarithm of their number to 10 % at 5 000; and less above
    100 000, because at most 10 000 images are held out.
    """
    if count <= SMALL:
        return SMALL_SHARE
    progress = min(1.0, math.log(count / SMALL) / math.log(LARGE / SMALL))
    share = SMALL_SHARE + progress * (LARGE_SHARE - SMALL_SHARE)
    return min(round(share, 6), MOST / count)


def hold_out(examples: Examples, share: float | None = None, seed: int = 0) -> tuple[Examples, Examples]:
    """Split into examples for training and held-out ones: `share` of each class, at least one if it has two.

    By default `default_share`. Examples are chosen by a hash of their ids, so that reordering or adding a few changes
    the split little.
    """
    if share is None:
        share = default_share(len(examples))
    if not 0 <= share < 1:
        raise UserError(f"the held-out share {share} must be at least 0 and less than 1, such as 0.1")
    is_held_out = np.zeros(len(examples), bool)
    if share > 0:
        hashes = np.array([_hash(each, seed) for each in examples.ids], np.uint64)
        members = [np.flatnonzero(examples.labels == label) for label in np.unique(examples.labels)]
        for own, count in zip(members, _counts([len(own) for own in members], share), strict=True):
            is_held_out[own[np.argsort(hashes[own])[:count]]] = True
    return examples.take(np.flatnonzero(~is_held_out)), examples.take(np.flatnonzero(is_held_out))


def align_labels(examples: Examples, classes: Sequence[str]) -> Examples:
    """The same examples with labels that index `classes`, such as those of the training set.

    A class that is spelled differently in case, punctuation or spaces is taken for the same, with a warning. Without
    `classes`, as of a training set with captions alone, the labels are left out. Raises UserError for a class that is
    none of them, and for examples that cannot be compared: without labels, or without captions where these are all.
    """
    if examples.classes == tuple(classes):
        return examples
    if not examples.labelled:
        raise UserError(
            f"{examples.name} has no labels, and accuracy is measured over the {len(classes)} classes of the training "
            "data: name its column with --label-column, or give data with labels"
        )
    if not classes:
        if not examples.captioned:
            raise UserError(
                f"{examples.name} has no captions, and the training data have nothing else: give data with captions"
            )
        return replace(examples, labels=np.full(len(examples), -1, np.int64), classes=())
    label_of = match_names(examples.classes, classes)
    for name in examples.classes:
        if name not in label_of:
            raise unknown(f"class in {examples.name}", name, classes)
    table = np.array([*(label_of[name] for name in examples.classes), -1], np.int64)
    other = [f"{name!r} is taken for {classes[i]!r}" for name, i in label_of.items() if name != classes[i]]
    more = f", and {len(other) - 1} more likewise" if len(other) > 1 else ""
    warning = (f"{examples.name}: the class {other[0]}{more}",) if other else ()
    return replace(
        examples,
        labels=table[examples.labels],
        classes=tuple(classes),
        warnings=(*examples.warnings, *warning),
    )


def _counts(members: list[int], share: float) -> list[int]:
    """How many examples of each class are held out: at least one if there are two, never all.

    Rounded to the nearest number; downwards if their sum would exceed MOST by rounding alone.
    """
    counts = [round(share * count) for count in members]
    if share * sum(members) < MOST + 0.5 <= sum(counts):
        counts = [math.floor(share * count) for count in members]
    return [min(max(1, own), count - 1) for own, count in zip(counts, members, strict=True)]


def _hash(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}\0{name}".encode(errors="replace"), digest_size=8).digest())
