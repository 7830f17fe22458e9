"""Metrics: pure functions of saved predictions, so that every number can be recomputed without the model."""

from __future__ import annotations

from tracer.core.metrics.calibration import (
    Bin,
    Curve,
    adaptive_ece,
    ece,
    ece_batched,
    noise_floor,
    reliability,
    sigmoid_ece,
    temperature,
)
from tracer.core.metrics.intervals import (
    Interval,
    Spread,
    counted_interval,
    independent_mean,
    mean_std,
    paired_interval,
    t_interval,
    t_quantile,
    wilson_interval,
)
from tracer.core.metrics.metric import Metric
from tracer.core.metrics.resampling import bootstrap, mean_interval, metric_interval, optimism, paired
from tracer.core.metrics.retention import agreement, kl
from tracer.core.metrics.retrieval import pair_ranks
from tracer.core.metrics.scores import accuracy, brier, macro_f1, nll, top5

METRICS: dict[str, Metric[...]] = {
    metric.name: metric for metric in (accuracy, top5, macro_f1, nll, brier, ece, adaptive_ece, ece_batched)
}


def telling(classes: int) -> tuple[Metric[...], ...]:
    """The metrics that can differ between models where so many classes are to choose from."""
    return tuple(metric for metric in METRICS.values() if classes >= metric.least)
