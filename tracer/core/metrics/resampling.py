"""Bootstrap intervals and paired comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tracer.core.metrics.intervals import Interval, wilson_interval
from tracer.core.metrics.metric import Metric, positive

SHARES = ("accuracy", "top5")  # metrics that are a share of images
DRAWS = 2**22  # indices drawn at a time, to bound memory


def metric_interval(metric: Metric[...], logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Interval:
    """The metric with its 95 % interval: Wilson's for a share of images, else the bootstrap's.

    A metric that depends on the order of images has none.
    """
    if metric.ordered:
        return Interval.unknown(float(metric(logits, label)))
    if metric.name in SHARES:  # the bootstrap would be certain where all images are right
        return wilson_interval(float(metric(logits, label)), len(label))
    return bootstrap(metric, logits, label)


def bootstrap(
    metric: Metric[...],
    logits: Float[Tensor, "n k"],
    label: Int[Tensor, " n"],
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The metric with its 95 % bootstrap interval, clipped to the metric's range."""
    summaries = metric.summaries(logits, label)
    scores = [metric.score(summaries[draw]) for draw in draws(len(label), samples, seed)]
    low, value, high = basic_interval(float(metric.score(summaries)), torch.cat(scores))
    return Interval(max(low, 0.0), value, min(high, metric.ceiling))


def mean_interval(values: Float[Tensor, " n"], samples: int = 1000, seed: int = 0) -> Interval:
    """A mean with its 95 % bootstrap interval, clipped to the range of the values."""
    means = torch.cat([values[draw].mean(dim=1) for draw in draws(len(values), samples, seed)])
    low, value, high = basic_interval(float(values.mean()), means)
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

    Both are resampled together, so the difficulty that samples have in common cancels.
    """
    if len(first) != len(second):
        raise ValueError(f"two runs on the same samples expected, not {len(first)} and {len(second)} rows")
    a, b = metric.summaries(first, label), metric.summaries(second, label)
    value = float(metric.score(a)) - float(metric.score(b))
    scores = [metric.score(a[draw]) - metric.score(b[draw]) for draw in draws(len(label), samples, seed)]
    return basic_interval(value, torch.cat(scores))


def optimism(
    hits: Bool[Tensor, "k n"],
    choose: Callable[[Bool[Tensor, "k n"]], int],
    samples: int = 200,
    seed: int = 0,
) -> float:
    """How much too high the accuracy of a chosen one of k models is expected to be on the n images that chose it.

    Efron's optimism: `choose` is repeated on resampled images, and the accuracy of its choice there is compared with
    the one on all images. For a fixed model that gap is 0 in the mean: taking off that of the choice on all images
    reduces noise, to 0 where every resample chooses the same.
    """
    accuracies, fixed = hits.double().mean(dim=1), choose(hits)
    gaps = []
    for rows in draws(hits.shape[1], samples, seed):
        for row in rows:
            drawn = hits[:, row]
            gap = drawn.double().mean(dim=1) - accuracies
            gaps.append(float(gap[choose(drawn)] - gap[fixed]))
    return max(0.0, sum(gaps) / len(gaps))


def draws(n: int, samples: int, seed: int) -> Iterator[Int[Tensor, "m n"]]:
    """`samples` rows of n indices drawn with replacement, in batches that bound memory."""
    generator = torch.Generator().manual_seed(seed)
    left, rows = positive("samples", samples), max(1, DRAWS // n)
    while left > 0:
        yield torch.randint(n, (min(rows, left), n), generator=generator)
        left -= rows


def basic_interval(value: float, scores: Float[Tensor, " m"]) -> Interval:
    """The basic bootstrap interval [2v − q₉₇.₅, 2v − q₂.₅], widened to contain v.

    Sampling biases a calibration error upward, and resampling does so again: reflecting the quantiles at v
    removes that bias, percentiles would count it twice. For means the two intervals are about the same.
    """
    low, high = torch.quantile(scores, torch.tensor([0.025, 0.975], dtype=scores.dtype)).tolist()
    return Interval(min(2 * value - high, value), value, max(2 * value - low, value))
