"""Training and held-out data of one source. `check`, `train`, `resume` and `merge` all divide data here.

A split called val is the held-out set. A split called test is never used in training or for a decision: it is what
`tracer eval RUN --data SOURCE` measures. Without val, a share of the training split is held out. A share can also be
kept for a test, in data without such a split: it is neither trained on nor held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tracer.core.errors import UserError
from tracer.data.checking.duplicates import duplicates, trained_too
from tracer.data.examples import Examples
from tracer.data.options import has_split
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import align_labels, default_share, hold_out

Scan = Callable[[Examples], Examples]

MEASURE = "give images to measure the result by, with --held-out DATA"
TEST_SEED = 1  # of the hash that chooses images for a test; held-out ones are chosen with seed 0


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
        both = dict.fromkeys((*self.train.warnings, *self.held_out.warnings))
        return (*both, *self.shortage, *self.overlap, *self._untrained(), *self._contradictions())

    @property
    def shortage(self) -> Iterator[str]:
        """A warning if a share came to nothing, as where each class has one image; a share of 0 is meant."""
        if self.share and not len(self.held_out):
            yield f"nothing is held out of {self.train.name}, where each class has one image: {MEASURE}"

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

    def _contradictions(self) -> Iterator[str]:
        """Images that are in the training data more than once, as different classes."""
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
    **options: str | None,
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
    if held_out is not None:
        others = check(load(held_out, split="val", **options))
        return Division(train, align_labels(others, train.classes), None, held_out, test)
    if share is None and has_split(train.splits, "val"):
        others = check(load(data, split="val", **options))
        return Division(train, align_labels(others, train.classes), None, "the split val", test)
    share = default_share(len(train)) if share is None else share
    rest, part = hold_out(train, share)
    return Division(rest, part, share, f"{share:.1%} of the training data", test)
