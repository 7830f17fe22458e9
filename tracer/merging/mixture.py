"""A mixture of Beta densities on (0, 1), fitted by EM with moment matching in the M step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

EDGE = 1e-6  # distance kept from 0 and 1, where a Beta density may be infinite


class Mixture(NamedTuple):
    """Shape parameters and weight of each component."""

    a: Float[Tensor, " k"]
    b: Float[Tensor, " k"]
    weight: Float[Tensor, " k"]

    @property
    def mean(self) -> Float[Tensor, " k"]:
        return self.a / (self.a + self.b)

    def responsibilities(self, x: Float[Tensor, " n"]) -> Float[Tensor, "n k"]:
        """Posterior probability of each component for each value."""
        return self.log_joint(x).softmax(dim=1)

    def log_joint(self, x: Float[Tensor, " n"]) -> Float[Tensor, "n k"]:
        x = x.clamp(EDGE, 1 - EDGE)[:, None]
        norm = torch.lgamma(self.a + self.b) - torch.lgamma(self.a) - torch.lgamma(self.b)
        return self.weight.log() + norm + (self.a - 1) * x.log() + (self.b - 1) * torch.log1p(-x)


def fit(x: Float[Tensor, " n"], count: int = 3, tolerance: float = 1e-4, rounds: int = 200) -> Mixture:
    """EM from a k-means start, until the mean log-likelihood rises by less than `tolerance`."""
    x = x.double()
    membership = torch.nn.functional.one_hot(clusters(x, count), count).double()
    mixture, previous = _matched(x, membership), -torch.inf
    for _ in range(rounds):
        joint = mixture.log_joint(x)
        likelihood = float(joint.logsumexp(dim=1).mean())
        if likelihood - previous < tolerance:
            break
        previous = likelihood
        mixture = _matched(x, joint.softmax(dim=1))
    return mixture


def clusters(x: Float[Tensor, " n"], count: int, rounds: int = 100) -> Int[Tensor, " n"]:
    """One-dimensional k-means from evenly spaced quantiles; deterministic."""
    levels = (torch.arange(count, dtype=x.dtype) + 0.5) / count
    centres = torch.quantile(x, levels)
    for _ in range(rounds):
        label = (x[:, None] - centres).abs().argmin(dim=1)
        new = torch.stack([x[label == k].mean() if (label == k).any() else centres[k] for k in range(count)])
        if torch.equal(new, centres):
            break
        centres = new
    return (x[:, None] - centres).abs().argmin(dim=1)


def _matched(x: Float[Tensor, " n"], membership: Float[Tensor, "n k"]) -> Mixture:
    """Beta densities with the weighted mean m and variance v of their members: a + b = m(1−m)/v − 1."""
    total = membership.sum(dim=0).clamp(min=EDGE)
    mean = (membership * x[:, None]).sum(dim=0) / total
    mean = mean.clamp(EDGE, 1 - EDGE)
    variance = (membership * (x[:, None] - mean).square()).sum(dim=0) / total
    concentration = (mean * (1 - mean) / variance.clamp(min=EDGE**2) - 1).clamp(min=EDGE)
    return Mixture(mean * concentration, (1 - mean) * concentration, total / total.sum())
