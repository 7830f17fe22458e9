"""Arms side by side: measures over folds and seeds, and their differences, resampled over emoji.

An emoji is tested in several styles and by several runs, so emoji, not pictures, are what the bootstrap draws. What
another seed would change is added where a fold has several of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from studies.emojishift.measure import suite
from studies.emojishift.rows import Row, ids
from tracer.core.metrics import Interval
from tracer.data.emojishift import styles
from tracer.evaluation.suites.emojishift import NAMES

Measure = Literal["id", "ood", "corrupted", "retention", "ece id", "ece ood"]
DRAWS, BINS = 1000, 15
NORMAL = 1.959964  # 97.5 % of the normal distribution lie below


class Answers(NamedTuple):
    """How a test set was answered, by all runs one after the other."""

    emoji: tuple[str, ...]  # code points
    right: np.ndarray
    sure: np.ndarray


def answers(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> dict[str, Answers]:
    """The answers that a measure is made of, by test set, in an order that all arms share."""
    ordered = sorted(rows, key=lambda row: (row.fold, row.seed))
    return {shift: _joined(ordered, shift, alpha) for shift in shifts(rows[0].style, measure)}


def _joined(rows: Sequence[Row], shift: str, alpha: float) -> Answers:
    return Answers(
        tuple(name.partition("/")[2] for row in rows for name in ids(shift, row.fold)),
        np.concatenate([row.right(shift, alpha) for row in rows]),
        np.concatenate([row.sure(shift, alpha) for row in rows]),
    )


def shifts(style: str, measure: Measure) -> tuple[str, ...]:
    """The test sets that a measure is the mean over."""
    if measure == "retention":
        return (NAMES,)
    if measure == "corrupted":
        return tuple(each.name for each in suite(style, 0).shifts if each.derived)
    return (style,) if measure.endswith("id") else tuple(each for each in styles() if each != style)


def value(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> Interval:
    """A measure with its 95 % interval over emoji and seeds, inside its own range."""
    found = _interval(_scores(answers(rows, measure, alpha), measure))
    runs = [(row.fold, _score([row], measure, alpha)) for row in rows]
    low, score, high = widened(found, *seed_error(runs))
    return Interval(max(low, 0.0), score, min(high, 1.0))


def difference(
    first: Sequence[Row],
    second: Sequence[Row],
    measure: Measure,
    alpha: float = 1.0,
    other: float | None = None,
) -> Interval:
    """first − second, picture by picture, with its 95 % interval over emoji and seeds; `other` is the second's α."""
    other = alpha if other is None else other
    trials = [sorted((row.fold, row.seed) for row in rows) for rows in (first, second)]
    if trials[0] != trials[1]:
        raise ValueError("two arms with the same folds and seeds expected")
    a, b = answers(first, measure, alpha), answers(second, measure, other)
    found = _interval(_scores(a, measure) - _scores(b, measure))
    partner = {(row.fold, row.seed): row for row in second}
    runs = [
        (row.fold, _score([row], measure, alpha) - _score([partner[row.fold, row.seed]], measure, other))
        for row in first
    ]
    return widened(found, *seed_error(runs))


def seed_error(runs: Sequence[tuple[int, float]]) -> tuple[float, int]:
    """The standard error that seeds bring into a mean over runs (fold, score), and its degrees of freedom.

    It is read off their spread within a fold, and zero where no fold has two: nothing is known then.
    """
    folds: dict[int, list[float]] = {}
    for fold, score in runs:
        folds.setdefault(fold, []).append(score)
    free = len(runs) - len(folds)
    within = sum(float(np.var(scores)) * len(scores) for scores in folds.values())
    return (math.sqrt(within / free / len(runs)) if free else 0.0), free


def widened(found: Interval, error: float, free: int) -> Interval:
    """The 95 % interval with a further error in it, known from few runs (Welch and Satterthwaite).

    It errs on the wide side: what a seed changes by chance about single emoji is in both errors.
    """
    low, score, high = found
    if not error:
        return found

    def wider(half: float) -> float:
        both = math.hypot(half / NORMAL, error)
        return both * student_t(free * (both / error) ** 4)

    return Interval(score - wider(score - low), score, score + wider(high - score))


def per_style(rows: Sequence[Row], alpha: float = 1.0) -> dict[str, float]:
    """Accuracy in each style, the trained one included."""
    found = answers(rows, "id", alpha) | answers(rows, "ood", alpha)
    return {style: float(found[style].right.mean()) for style in styles()}


def student_t(free: float) -> float:
    """What 97.5 % of Student's t lie below, by its expansion around the normal; SciPy for one number is much."""
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / free + second / free**2 + third / free**3


def _score(rows: Sequence[Row], measure: Measure, alpha: float) -> float:
    return float(_scores(answers(rows, measure, alpha), measure, draws=0)[0])


def _scores(found: dict[str, Answers], measure: Measure, draws: int | None = None) -> Float[np.ndarray, " d"]:
    """The measure on all emoji, and on each resample of them; every test set counts the same."""
    points = sorted({point for each in found.values() for point in each.emoji})
    line = {point: place for place, point in enumerate(points)}
    places = {shift: np.array([line[point] for point in each.emoji]) for shift, each in found.items()}
    score = _gaps if measure.startswith("ece") else _accuracy
    weights = _weights(len(line), DRAWS if draws is None else draws)
    scores = np.mean([score(each, places[shift], weights) for shift, each in found.items()], axis=0)
    return np.abs(scores).sum(axis=1) if measure.startswith("ece") else scores


def _accuracy(found: Answers, place: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, " d"]:
    count = weights.shape[1]
    right, all_ = np.bincount(place, found.right, count), np.bincount(place, minlength=count)
    return (weights @ right) / (weights @ all_)


def _gaps(found: Answers, place: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, "d b"]:
    """In each bin of confidence, how far the mean confidence lies above the mean of right answers, by its share.

    ECE is the sum of their sizes. Over several test sets they are first averaged: the ECE of an even mixture of the
    sets. A mean of the ECE of small sets would be large for a calibrated model too.
    """
    count = weights.shape[1]
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
