"""How sure a number is: bootstrap intervals, paired comparisons, spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics.metric import Metric, positive

DRAWS = 2**22  # indices drawn at a time, to bound memory


class Interval(NamedTuple):
    """A value with the ends of its 95 % interval."""

    low: float
    value: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


class Spread(NamedTuple):
    """Mean and sample standard deviation over seeds; one seed has no spread."""

    mean: float
    std: float | None
    seeds: int


def bootstrap(
    metric: Metric[...],
    logits: Float[Tensor, "n k"],
    label: Int[Tensor, " n"],
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The metric with its 95 % bootstrap interval over the samples, inside the metric's own range."""
    summaries = metric.summaries(logits, label)
    scores = [metric.score(summaries[draw]) for draw in draws(len(label), samples, seed)]
    low, value, high = reflected(float(metric.score(summaries)), torch.cat(scores))
    return Interval(max(low, 0.0), value, min(high, metric.ceiling))


def mean_interval(values: Float[Tensor, " n"], samples: int = 1000, seed: int = 0) -> Interval:
    """A mean with its 95 % bootstrap interval; of hits and misses it is a share, and stays within 0 and 1."""
    means = torch.cat([values[draw].mean(dim=1) for draw in draws(len(values), samples, seed)])
    low, value, high = reflected(float(values.mean()), means)
    return Interval(max(low, float(values.min())), value, min(high, float(values.max())))


def paired(
    metric: Metric[...],
    first: Float[Tensor, "n k"],
    second: Float[Tensor, "n j"],
    label: Int[Tensor, " n"],
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The difference first − second of two runs on the same samples, with its 95 % interval.

    Both are resampled together, so what makes a sample hard for both cancels.
    """
    if len(first) != len(second):
        raise ValueError(f"two runs on the same samples expected, not {len(first)} and {len(second)} rows")
    a, b = metric.summaries(first, label), metric.summaries(second, label)
    value = float(metric.score(a)) - float(metric.score(b))
    scores = [metric.score(a[draw]) - metric.score(b[draw]) for draw in draws(len(label), samples, seed)]
    return reflected(value, torch.cat(scores))


def draws(n: int, samples: int, seed: int) -> Iterator[Int[Tensor, "m n"]]:
    """`samples` resamples of n indices with replacement, a few at a time."""
    generator = torch.Generator().manual_seed(seed)
    left, rows = positive("samples", samples), max(1, DRAWS // n)
    while left > 0:
        yield torch.randint(n, (min(rows, left), n), generator=generator)
        left -= rows


def reflected(value: float, scores: Float[Tensor, " m"]) -> Interval:
    """The basic bootstrap interval [2v − q₉₇.₅, 2v − q₂.₅], widened to hold v.

    Resampling biases a calibration error upward, as sampling did already; reflecting the quantiles at v
    takes that bias off where the plain percentiles would add it twice. Means come out the same either way.
    """
    low, high = torch.quantile(scores, torch.tensor([0.025, 0.975], dtype=scores.dtype)).tolist()
    return Interval(min(2 * value - high, value), value, max(2 * value - low, value))


def mean_std(values: Iterable[float]) -> Spread:
    """Mean ± standard deviation (n − 1 in the denominator) over seeds."""
    numbers = [float(value) for value in values]
    if not numbers:
        raise UserError("no values to average")
    mean = math.fsum(numbers) / len(numbers)
    if len(numbers) == 1:
        return Spread(mean, None, 1)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)
    return Spread(mean, math.sqrt(variance), len(numbers))
