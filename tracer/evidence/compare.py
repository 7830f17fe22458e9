"""Arms side by side: measures over folds and seeds, and their differences, resampled over emoji.

An emoji is tested in several styles and by several runs, so emoji, not pictures, are what the bootstrap draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from tracer.data.emojishift import styles
from tracer.evidence.measure import suite
from tracer.evidence.results import Row, ids
from tracer.metrics import Interval
from tracer.suites.emojishift import NAMES

Measure = Literal["id", "ood", "corrupted", "retention", "fresh retention", "ece id", "ece ood"]
DRAWS, BINS = 1000, 15


class Answers(NamedTuple):
    """How a test set was answered, by all runs one after the other."""

    emoji: tuple[str, ...]  # code points
    right: np.ndarray
    sure: np.ndarray


def answers(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> dict[str, Answers]:
    """The answers that a measure is made of, by test set, in an order that all arms share."""
    ordered = sorted(rows, key=lambda row: (row.fold, row.seed))
    fresh = measure == "fresh retention"
    return {shift: _joined(ordered, shift, alpha, fresh) for shift in shifts(rows[0].style, measure)}


def _joined(rows: Sequence[Row], shift: str, alpha: float, fresh: bool) -> Answers:
    """The answers of all runs; of each only those about emoji of its test fold, where they are to be fresh."""
    points = [np.array([name.partition("/")[2] for name in ids(shift, row.fold)]) for row in rows]
    asked = [
        np.isin(each, tested(row.style, row.fold)) if fresh else np.full(len(each), True)
        for row, each in zip(rows, points, strict=True)
    ]

    def joined(parts: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate([part[kept] for part, kept in zip(parts, asked, strict=True)])

    return Answers(
        tuple(joined(points).tolist()),
        joined(row.right(shift, alpha) for row in rows),
        joined(row.sure(shift, alpha) for row in rows),
    )


@cache
def tested(style: str, fold: int) -> tuple[str, ...]:
    """The code points of a test fold; finetuning can be on a style that has them all, and all are asked for."""
    return tuple(name.partition("/")[2] for name in ids(style, fold))


def shifts(style: str, measure: Measure) -> tuple[str, ...]:
    """The test sets that a measure is the mean over."""
    if measure in ("retention", "fresh retention"):
        return (NAMES,)
    if measure == "corrupted":
        return tuple(each.name for each in suite(style, 0).shifts if each.derived)
    return (style,) if measure.endswith("id") else tuple(each for each in styles() if each != style)


def value(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> Interval:
    """A measure with its 95 % interval over emoji, inside its own range."""
    low, found, high = _interval(_scores(answers(rows, measure, alpha), measure))
    return Interval(max(low, 0.0), found, min(high, 1.0))


def difference(
    first: Sequence[Row],
    second: Sequence[Row],
    measure: Measure,
    alpha: float = 1.0,
    other: float | None = None,
) -> Interval:
    """first − second on the same pictures, with its 95 % interval over emoji; `other` is the second arm's α."""
    a = answers(first, measure, alpha)
    b = answers(second, measure, alpha if other is None else other)
    if {shift: each.emoji for shift, each in a.items()} != {shift: each.emoji for shift, each in b.items()}:
        raise ValueError("two arms with the same folds and seeds expected")
    return _interval(_scores(a, measure) - _scores(b, measure))


def per_style(rows: Sequence[Row], alpha: float = 1.0) -> dict[str, float]:
    """Accuracy in each style, the trained one included."""
    found = answers(rows, "id", alpha) | answers(rows, "ood", alpha)
    return {style: float(found[style].right.mean()) for style in styles()}


def _scores(found: dict[str, Answers], measure: Measure) -> Float[np.ndarray, " d"]:
    """The measure on all emoji, and on each resample of them; every test set counts the same."""
    points = sorted({point for each in found.values() for point in each.emoji})
    line = {point: place for place, point in enumerate(points)}
    places = {shift: np.array([line[point] for point in each.emoji]) for shift, each in found.items()}
    score = _gaps if measure.startswith("ece") else _accuracy
    scores = np.mean([score(each, places[shift], len(line)) for shift, each in found.items()], axis=0)
    return np.abs(scores).sum(axis=1) if measure.startswith("ece") else scores


def _accuracy(found: Answers, place: np.ndarray, count: int) -> Float[np.ndarray, " d"]:
    weights = _weights(count, DRAWS)
    right, all_ = np.bincount(place, found.right, count), np.bincount(place, minlength=count)
    return (weights @ right) / (weights @ all_)


def _gaps(found: Answers, place: np.ndarray, count: int) -> Float[np.ndarray, "d b"]:
    """In each bin of confidence, how far the mean confidence lies above the mean of right answers, by its share.

    ECE is the sum of their sizes. Over several test sets they are first averaged: the ECE of an even mixture of the
    sets. A mean of the ECE of small sets would be large for a calibrated model too.
    """
    weights = _weights(count, DRAWS)
    bins = np.minimum((found.sure * BINS).astype(int), BINS - 1)
    off = np.bincount(place * BINS + bins, found.sure - found.right, count * BINS).reshape(count, BINS)
    return (weights @ off) / (weights @ np.bincount(place, minlength=count))[:, None]


def _interval(scores: Float[np.ndarray, " d"]) -> Interval:
    """The basic bootstrap interval; the first score is that of all emoji."""
    score = float(scores[0])
    low, high = np.quantile(scores[1:], [0.025, 0.975]).tolist()
    return Interval(min(2 * score - high, score), score, max(2 * score - low, score))


@cache
def _weights(count: int, draws: int) -> Float[np.ndarray, "d e"]:
    """How often each emoji counts: once in the first line, as often as it is drawn in the others."""
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=draws)
    return np.concatenate([np.ones((1, count)), drawn.astype(float)])
