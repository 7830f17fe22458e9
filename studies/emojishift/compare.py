"""Measures of an arm over folds and seeds, and differences between two arms, with bootstrap intervals.

An emoji is tested in several styles and by several runs, so the bootstrap draws emoji and not images. The error over
seeds is added where a fold has several seeds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from studies.emojishift.rows import Measure, Row
from tracer.core.metrics import Interval, t_quantile
from tracer.core.metrics.intervals import NORMAL_QUANTILE
from tracer.core.metrics.resampling import basic_interval
from tracer.data.embedded.emojishift import styles

DRAWS, BINS = 1000, 15


class Answers(NamedTuple):
    """The answers of all runs on a test set, one run after the other."""

    emoji: tuple[str, ...]  # code points
    right: np.ndarray
    sure: np.ndarray


def answers(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> dict[str, Answers]:
    """The answers behind a measure, by test set, in an order that all arms share."""
    ordered = sorted(rows, key=lambda row: (row.fold, row.seed))
    return {shift: _joined(ordered, shift, alpha) for shift in rows[0].shifts(measure)}


def _joined(rows: Sequence[Row], shift: str, alpha: float) -> Answers:
    return Answers(
        tuple(name.partition("/")[2] for row in rows for name in row.ids(shift)),
        np.concatenate([row.right(shift, alpha) for row in rows]),
        np.concatenate([row.sure(shift, alpha) for row in rows]),
    )


def value(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> Interval:
    """A measure with its 95 % interval over emoji and seeds, clipped to [0, 1]."""
    runs = [(row.fold, _score([row], measure, alpha)) for row in rows]
    low, score, high = over_seeds(resampled(rows, measure, alpha), runs)
    return Interval(max(low, 0.0), score, min(high, 1.0))


def difference(
    first: Sequence[Row],
    second: Sequence[Row],
    measure: Measure,
    alpha: float = 1.0,
    other: float | None = None,
) -> Interval:
    """first − second, paired by image, with its 95 % interval over emoji and seeds; `other` is the second's α."""
    other = alpha if other is None else other
    trials = [sorted((row.fold, row.seed) for row in rows) for rows in (first, second)]
    if trials[0] != trials[1]:
        raise ValueError("two arms with the same folds and seeds expected")
    scores = resampled(first, measure, alpha) - resampled(second, measure, other)
    partner = {(row.fold, row.seed): row for row in second}
    runs = [
        (row.fold, _score([row], measure, alpha) - _score([partner[row.fold, row.seed]], measure, other))
        for row in first
    ]
    return over_seeds(scores, runs)


def seed_error(runs: Sequence[tuple[Hashable, float]]) -> tuple[float, int]:
    """The standard error over seeds of a mean over runs (fold, score), and its degrees of freedom.

    It is estimated from the spread within folds, and zero if no fold has two seeds: then nothing is known of it.
    """
    folds: dict[Hashable, list[float]] = {}
    for fold, score in runs:
        folds.setdefault(fold, []).append(score)
    free = len(runs) - len(folds)
    within = sum(float(np.var(scores)) * len(scores) for scores in folds.values())
    return (math.sqrt(within / free / len(runs)) if free else 0.0), free


def widened(interval: Interval, error: float, free: int) -> Interval:
    """The 95 % interval with a further standard error that has `free` degrees of freedom (Welch and Satterthwaite).

    It is conservative: what a seed changes by chance about single emoji is in both errors.
    """
    low, score, high = interval
    if not error:
        return interval

    def wider(half: float) -> float:
        both = math.hypot(half / NORMAL_QUANTILE, error)
        return both * t_quantile(free * (both / error) ** 4)

    return Interval(score - wider(score - low), score, score + wider(high - score))


def per_style(rows: Sequence[Row], alpha: float = 1.0) -> dict[str, float]:
    """Accuracy in each style, the trained one included."""
    collected = answers(rows, "id", alpha) | answers(rows, "ood", alpha)
    return {style: float(collected[style].right.mean()) for style in styles()}


def resampled(rows: Sequence[Row], measure: Measure, alpha: float = 1.0) -> Float[np.ndarray, " d"]:
    """The measure on all emoji, then on each resample of them; the resamples are the same for every arm."""
    return _scores(answers(rows, measure, alpha), measure)


def over_seeds(scores: Float[np.ndarray, " d"], runs: Sequence[tuple[int, float]]) -> Interval:
    """The 95 % interval of resampled scores, widened by the spread between seeds of runs (fold, score)."""
    return widened(_interval(scores), *seed_error(runs))


def _score(rows: Sequence[Row], measure: Measure, alpha: float) -> float:
    return float(_scores(answers(rows, measure, alpha), measure, draws=0)[0])


def _scores(
    by_set: dict[str, Answers], measure: Measure, draws: int | None = None
) -> Float[np.ndarray, " d"]:
    """The measure on all emoji, then on each resample of them; every test set has the same weight."""
    points = sorted({point for each in by_set.values() for point in each.emoji})
    index = {point: place for place, point in enumerate(points)}
    places = {shift: np.array([index[point] for point in each.emoji]) for shift, each in by_set.items()}
    score = _gaps if measure.startswith("ece") else _accuracy
    weights = _weights(len(index), DRAWS if draws is None else draws)
    scores = np.mean([score(each, places[shift], weights) for shift, each in by_set.items()], axis=0)
    return np.abs(scores).sum(axis=1) if measure.startswith("ece") else scores


def _accuracy(collected: Answers, place: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, " d"]:
    count = weights.shape[1]
    right, all_ = np.bincount(place, collected.right, count), np.bincount(place, minlength=count)
    return (weights @ right) / (weights @ all_)


def _gaps(collected: Answers, place: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, "d b"]:
    """For each bin of confidence: mean confidence minus accuracy, times the share of answers in the bin.

    ECE is the sum of the absolute values. Over several test sets the gaps are averaged first, which gives the ECE of an
    even mixture of the sets; the mean of their ECEs would be large for a calibrated model too, as the sets are small.
    """
    count = weights.shape[1]
    bins = np.minimum((collected.sure * BINS).astype(int), BINS - 1)
    off = np.bincount(place * BINS + bins, collected.sure - collected.right, count * BINS).reshape(
        count, BINS
    )
    return (weights @ off) / (weights @ np.bincount(place, minlength=count))[:, None]


def _interval(scores: Float[np.ndarray, " d"]) -> Interval:
    """The basic bootstrap interval; the first score is that of all emoji."""
    return basic_interval(float(scores[0]), torch.from_numpy(scores[1:]))


@cache
def _weights(count: int, draws: int) -> Float[np.ndarray, "d e"]:
    """The weight of each emoji: 1 in the first row, the number of times it was drawn in the others."""
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=draws)
    return np.concatenate([np.ones((1, count)), drawn.astype(float)])
