"""Calibration: ECE, adaptive ECE, the reliability curve, and the temperature that calibrates a model."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.metrics.metric import ROWS, Metric, check_predictions, metric, positive
from tracer.core.metrics.scores import rank

LOWEST, HIGHEST = 1e-3, 1e3  # temperatures


class Bin(NamedTuple):
    """The samples whose confidence lies in [low, high); the last bin holds confidence 1 too."""

    low: float
    high: float
    confidence: float  # mean over the bin
    accuracy: float
    size: int


class Curve(NamedTuple):
    """A reliability curve: the non-empty bins in order of confidence."""

    bins: tuple[Bin, ...]

    @property
    def ece(self) -> float:
        total = sum(bin.size for bin in self.bins)
        return sum(bin.size * abs(bin.accuracy - bin.confidence) for bin in self.bins) / total


def certainty(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 2"]:
    """Confidence (the largest probability) and 1 where the prediction is correct."""
    confidence = logits.softmax(dim=1).amax(dim=1)
    return torch.stack([confidence, (rank(logits, label) == 0).double()], dim=1)


def equal_width(confidence: Float[Tensor, "*m n"], bins: int) -> Int[Tensor, "*m n"]:
    """The bin of each confidence: [b/B, (b+1)/B); the last bin is closed and contains 1.0."""
    edges = torch.linspace(0, 1, positive("bins", bins) + 1, dtype=torch.float64)
    return (torch.bucketize(confidence.contiguous(), edges, right=True) - 1).clamp(0, bins - 1)


def equal_mass(confidence: Float[Tensor, "*m n"], bins: int) -> Int[Tensor, "*m n"]:
    """The bin of each confidence, with equally many samples in each; equal confidences always share a bin."""
    n = confidence.shape[-1]
    cuts = torch.arange(1, positive("bins", bins)) * n // bins
    edges = confidence.sort(dim=-1).values[..., cuts]
    return torch.searchsorted(edges.contiguous(), confidence.contiguous(), right=True)


def gap(summaries: Float[Tensor, "*m n 2"], index: Int[Tensor, "*m n"], bins: int) -> Float[Tensor, "*m b"]:
    """Σ over each bin of confidence − correct."""
    confidence, correct = summaries.unbind(dim=-1)
    empty = torch.zeros(*index.shape[:-1], bins, dtype=torch.float64)
    return empty.scatter_add_(-1, index, confidence - correct)


@metric(of=certainty, better="lower")
def ece(summaries: Float[Tensor, "*m n 2"], bins: int = 15) -> Float[Tensor, "*m"]:
    """Expected calibration error over the whole data set: Σ_b (n_b/n) |accuracy_b − confidence_b|.

    Bins have equal width and the last one is closed. Reference: Guo et al. 2017 (arXiv 1706.04599).
    """
    index = equal_width(summaries[..., 0], bins)
    return gap(summaries, index, bins).abs().sum(dim=-1) / summaries.shape[-2]


@metric(of=certainty, better="lower")
def adaptive_ece(summaries: Float[Tensor, "*m n 2"], bins: int = 15) -> Float[Tensor, "*m"]:
    """ECE over bins with equally many samples (Nixon et al. 2019, arXiv 1904.01685)."""
    index = equal_mass(summaries[..., 0], bins)
    return gap(summaries, index, bins).abs().sum(dim=-1) / summaries.shape[-2]


def pair_certainty(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 2"]:
    """The sigmoid of the largest logit, and 1 where the prediction is correct."""
    return torch.stack([logits.amax(dim=1).sigmoid(), (rank(logits, label) == 0).double()], dim=1)


@metric(of=pair_certainty, better="lower")
def sigmoid_ece(summaries: Float[Tensor, "*m n 2"], bins: int = 15) -> Float[Tensor, "*m"]:
    """ECE with the sigmoid of the largest logit as confidence, for models that give each pair its own probability."""
    return ece.score(summaries, bins)


@metric(of=certainty, better="lower", ordered=True)
def ece_batched(summaries: Float[Tensor, "*m n 2"], batch: int = 512, bins: int = 10) -> Float[Tensor, "*m"]:
    """Mean of the ECEs of consecutive batches: biased upward; use it only to compare with published tables.

    In a batch of 512 a bin has about 50 samples, and the absolute value turns the sampling noise of their
    accuracy into error. Each batch is weighted by its size, so that a small last one counts for what it is.
    """
    n = summaries.shape[-2]
    batch_index = torch.arange(n) // positive("batch", batch)
    batches = int(batch_index[-1]) + 1
    index = batch_index * bins + equal_width(summaries[..., 0], bins)
    return gap(summaries, index, batches * bins).abs().sum(dim=-1) / n


def noise_floor(
    metric: Metric[...], logits: Float[Tensor, "n k"], samples: int = 100, seed: int = 0
) -> float:
    """The mean of a calibration metric for a perfectly calibrated model with the same confidences.

    In each of `samples` simulations a prediction is correct with the probability that the model states. A value
    near the floor is no evidence of miscalibration; the floor falls as 1/√n.
    """
    if metric.summary is not certainty:
        raise ValueError(
            f"{metric.name} does not measure calibration: choose ece, adaptive_ece or ece_batched"
        )
    confidence = metric.summaries(logits, logits.argmax(dim=1))[:, 0]
    generator = torch.Generator().manual_seed(seed)
    values = []
    for _ in range(positive("samples", samples)):
        correct = torch.rand(len(confidence), generator=generator, dtype=torch.float64) < confidence
        values.append(metric.score(torch.stack([confidence, correct.double()], dim=1)))
    return float(torch.stack(values).mean())


def reliability(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"], bins: int = 15) -> Curve:
    """Accuracy against confidence in bins of equal width; a calibrated model lies on the diagonal."""
    confidence, correct = ece.summaries(logits, label).unbind(dim=1)
    index = equal_width(confidence, bins)
    count = torch.bincount(index, minlength=bins)
    mean = torch.bincount(index, confidence, minlength=bins) / count
    accuracy = torch.bincount(index, correct, minlength=bins) / count
    return Curve(
        tuple(
            Bin(b / bins, (b + 1) / bins, float(mean[b]), float(accuracy[b]), int(count[b]))
            for b in count.nonzero().flatten().tolist()
        )
    )


def temperature(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> float:
    """The T > 0 that minimises NLL(logits / T). Reference: Guo et al. 2017 (arXiv 1706.04599).

    With β = 1/T the loss mean[log Σ exp(β z) − β z_y] is convex, so its slope mean[E_p z − z_y] has one root,
    found by Newton's method in log β, with bisection when a step leaves the bracket. If there is no finite
    minimum (all predictions correct, or worse than chance), the bound of [0.001, 1000] is returned; if the loss
    does not depend on T, 1.
    """
    check_predictions(logits, label)
    label = label.to(logits.device, torch.int64)
    low, high = -math.log(HIGHEST), -math.log(LOWEST)
    at_low, at_high = slope(logits, label, low)[0], slope(logits, label, high)[0]
    if at_low >= 0 or at_high <= 0:
        return 1.0 if at_low >= 0 >= at_high else HIGHEST if at_low >= 0 else LOWEST
    log_beta = 0.0
    for _ in range(100):
        value, curvature = slope(logits, label, log_beta)
        low, high = (log_beta, high) if value < 0 else (low, log_beta)
        newton = log_beta - value / curvature if curvature > 0 else math.inf
        following = newton if low < newton < high else (low + high) / 2
        if abs(following - log_beta) < 1e-10:
            break
        log_beta = following
    return math.exp(-log_beta)


def slope(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"], log_beta: float) -> tuple[float, float]:
    """d NLL/dβ at β = exp(log_beta), and its derivative with respect to log β: β times the variance of z under p."""
    beta = math.exp(log_beta)
    first, second = 0.0, 0.0
    for rows, target in zip(logits.split(ROWS), label.split(ROWS), strict=True):
        z = rows.double() - rows.double().gather(1, target[:, None])  # relative to the label's logit
        p = (beta * z).softmax(dim=1)
        mean = (p * z).sum(dim=1, keepdim=True)
        first += float(mean.sum())
        second += float((p * (z - mean).square()).sum())
    return first / len(logits), beta * second / len(logits)
