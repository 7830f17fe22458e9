"""Does a confidence of 0.8 come true four times in five? ECE, adaptive ECE and the reliability curve."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.metrics.metric import Metric, metric, positive
from tracer.core.metrics.scores import rank


class Bin(NamedTuple):
    """The samples whose confidence lies in [low, high); the last bin holds confidence 1 too."""

    low: float
    high: float
    confidence: float  # mean over the bin
    accuracy: float
    size: int


class Curve(NamedTuple):
    """A reliability curve: the bins that hold samples, in order of confidence."""

    bins: tuple[Bin, ...]

    @property
    def ece(self) -> float:
        total = sum(bin.size for bin in self.bins)
        return sum(bin.size * abs(bin.accuracy - bin.confidence) for bin in self.bins) / total


def certainty(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"]) -> Float[Tensor, "n 2"]:
    """Confidence (the largest probability) and whether the prediction is right."""
    confidence = logits.softmax(dim=1).amax(dim=1)
    return torch.stack([confidence, (rank(logits, label) == 0).double()], dim=1)


def equal_width(confidence: Float[Tensor, "*m n"], bins: int) -> Int[Tensor, "*m n"]:
    """The bin of each confidence: [b/B, (b+1)/B), and the last one closed, so that 1.0 belongs to it."""
    edges = torch.linspace(0, 1, positive("bins", bins) + 1, dtype=torch.float64)
    return (torch.bucketize(confidence.contiguous(), edges, right=True) - 1).clamp(0, bins - 1)


def equal_mass(confidence: Float[Tensor, "*m n"], bins: int) -> Int[Tensor, "*m n"]:
    """The bin of each confidence when all bins hold equally many; equal confidences always share a bin."""
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
    """The same sum over bins that hold equally many samples (Nixon et al. 2019, arXiv 1904.01685)."""
    index = equal_mass(summaries[..., 0], bins)
    return gap(summaries, index, bins).abs().sum(dim=-1) / summaries.shape[-2]


@metric(of=certainty, better="lower", ordered=True)
def ece_batched(summaries: Float[Tensor, "*m n 2"], batch: int = 512, bins: int = 10) -> Float[Tensor, "*m"]:
    """Mean of the ECEs of consecutive batches, as published tables of this field have it: biased upward.

    A batch of 512 has about 50 samples in a bin, whose accuracy is off by chance; the absolute value turns
    that noise into error. Kept to compare with those tables. The last, smaller batch counts as a whole one.
    """
    n = summaries.shape[-2]
    which = torch.arange(n) // positive("batch", batch)
    batches = int(which[-1]) + 1
    index = which * bins + equal_width(summaries[..., 0], bins)
    sums = gap(summaries, index, batches * bins).unflatten(-1, (batches, bins)).abs().sum(dim=-1)
    return (sums / torch.bincount(which)).mean(dim=-1)


def noise_floor(
    metric: Metric[...], logits: Float[Tensor, "n k"], samples: int = 100, seed: int = 0
) -> float:
    """What a calibration metric reads, on average, for a model that has these confidences and deserves them.

    Whether each prediction is right is drawn anew with the probability that the model states. An error near
    its floor is no evidence of miscalibration; the floor falls as 1/√n.
    """
    if metric.summary is not certainty:
        raise ValueError(
            f"{metric.name} does not measure calibration: choose ece, adaptive_ece or ece_batched"
        )
    confidence = metric.summaries(logits, logits.argmax(dim=1))[:, 0]
    generator = torch.Generator().manual_seed(seed)
    readings = []
    for _ in range(positive("samples", samples)):
        correct = torch.rand(len(confidence), generator=generator, dtype=torch.float64) < confidence
        readings.append(metric.score(torch.stack([confidence, correct.double()], dim=1)))
    return float(torch.stack(readings).mean())


def reliability(logits: Float[Tensor, "n k"], label: Int[Tensor, " n"], bins: int = 15) -> Curve:
    """Accuracy against confidence, bin by bin: a calibrated model lies on the diagonal."""
    confidence, correct = ece.summaries(logits, label).unbind(dim=1)
    index = equal_width(confidence, bins)
    count = torch.bincount(index, minlength=bins)
    held = torch.bincount(index, confidence, minlength=bins) / count
    right = torch.bincount(index, correct, minlength=bins) / count
    filled = count.nonzero().flatten().tolist()
    return Curve(
        tuple(Bin(b / bins, (b + 1) / bins, float(held[b]), float(right[b]), int(count[b])) for b in filled)
    )
