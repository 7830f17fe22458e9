"""Training and held-out data of one source. `check`, `train`, `resume` and `merge` all divide data here.

A split called val is the held-out set. A split called test is never used in training or for a decision: it is what
`tracer eval RUN --data SOURCE` measures. Without val, a share of the training split is held out. A share can also be
kept for a test, in data without such a split: it is neither trained on nor held out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.checking.duplicates import duplicates, trained_too
from tracer.data.classes import match_names
from tracer.data.examples import Examples
from tracer.data.scan import scan
from tracer.data.sources import load

Scan = Callable[[Examples], Examples]

MEASURE = "give images to measure the result by, with --held-out DATA"
TEST_SEED = 1  # of the hash that chooses images for a test; held-out ones are chosen with seed 0
SMALL, LARGE = 500, 5_000  # images; below and above them the share does not depend on their number
SMALL_SHARE, LARGE_SHARE = 0.2, 0.1
MOST = 10_000  # held-out images: more would not make the interval of an accuracy noticeably smaller


@dataclass(frozen=True)
class Division:
    """Examples to train on, held-out ones, and the share that was held out; None if they came as a set of their own."""

    train: Examples
    held_out: Examples
    share: float | None
    source: str  # where the held-out examples come from, for messages
    test: Examples | None = None  # kept for a test, if a share for it was given

    def __str__(self) -> str:
        test = "" if self.test is None else f", {len(self.test)} kept for a test"
        return f"{len(self.train)} images to train on, {len(self.held_out)} held out ({self.source}){test}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably not meant, in either set."""
        own = (*self.train.warnings, *self.held_out.warnings)
        return tuple(dict.fromkeys((*own, *self.overlap, *self._untrained(), *self._strange())))

    @property
    def overlap(self) -> Iterator[str]:
        """A warning if held-out images are also trained on."""
        if shared := trained_too(self.train, self.held_out, "held-out images"):
            yield f"{shared}: accuracy on them is too good"

    def _untrained(self) -> Iterator[str]:
        """Classes without an image to train on, as where two sets write their labels differently.

        Class names are those of all splits, so that each split numbers them alike.
        """
        untrained = np.setdiff1d(range(len(self.train.classes)), self.train.labels)
        measured = np.isin(untrained, self.held_out.labels)
        elsewhere = "it is only in another split or in the list of classes, and models answer with it too"
        for labels, remark in (
            (untrained[measured], "held-out images are of it"),
            (untrained[~measured], elsewhere),
        ):
            if len(labels):
                others = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
                first = self.train.classes[labels[0]]
                yield f"no image of the class {first!r}{others} is trained on: {remark}"

    def _strange(self) -> Iterator[str]:
        """A share that came to nothing (0 is meant), and images that are trained on as different classes."""
        if self.share and not len(self.held_out):
            yield f"nothing is held out of {self.train.name}, where each class has one image: {MEASURE}"
        if groups := duplicates(self.train, contradicting=True):
            first = " and ".join(groups[0][:2])
            yield f"{len(groups)} images are trained on as more than one class, such as {first}"


def divide(
    data: str,
    held_out: str | None = None,
    share: float | None = None,
    *,
    test_share: float | None = None,
    check: Scan = scan,
    **options: Any,
) -> Division:
    """The training split of `data`, and what is held out: `held_out` if given, else its split val, else a share.

    `share` is held out of the training split if it is given, even if there is a split val. `test_share` of the training
    split is set apart before. Of `held_out` the split val is read if it has splits, else test. `check` is applied to
    each set that is read, `options` are those of `load`.
    """
    if held_out is not None and share is not None:
        raise UserError(f"give --held-out {held_out} or --held-out-share {share}, not both")
    train, test = check(load(data, split="train", **options)), None
    if test_share is not None:
        train, test = hold_out(train, test_share, TEST_SEED)
    options["white_level"] = train.white_level
    if held_out is not None:
        others = check(load(held_out, split="val", **options))
        return Division(train, align_labels(others, train.classes), None, held_out, test)
    if share is None and "val" in train.splits:
        others = check(load(data, split="val", **options))
        return Division(train, align_labels(others, train.classes), None, "the split val", test)
    share = default_share(len(train)) if share is None else share
    rest, part = hold_out(train, share)
    return Division(rest, part, share, f"{share:.1%} of the training data", test)


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
