"""DaWin's per-sample interpolation of weights, and the ensemble of two models' outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.core.weights import Weights
from tracer.data.examples import Examples
from tracer.measure.answers import Predictions
from tracer.merging.evaluator import Evaluator
from tracer.merging.wise import interpolate

EDGE = 1e-6  # distance kept from 0 and 1, where a Beta density may be infinite

Kind = Literal["samples", "clustered"]


def accuracies(evaluator: Evaluator, dawin: Kind | None, share: float) -> dict[str, float]:
    """Held-out accuracies of the pretrained and the finetuned model, alone and combined at inference.

    Combined by DaWin, of this kind; without it their outputs, with this share of the finetuned model's.
    """
    start, end = evaluator.group.start, evaluator.group.end

    def predict(weights: Weights, examples: Examples = evaluator.held_out) -> Predictions:
        with torch.no_grad():
            return evaluator.scorer(weights).predict(examples, evaluator.group.plan.templates)

    def predict_merged(alpha: float, indices: Tensor) -> Tensor:
        weights = evaluator.with_batchnorm_statistics(interpolate(start, end, alpha))
        return predict(weights, evaluator.held_out.take(indices.numpy())).logits

    pretrained, finetuned = predict(start), predict(end)
    alone = {"pretrained": pretrained.accuracy, "finetuned": finetuned.accuracy}
    if dawin is None:
        outputs = ensemble(pretrained.logits, finetuned.logits, share)
        return alone | {f"ensemble {share:g}": pretrained._replace(logits=outputs).accuracy}
    coefficient = coefficients(entropies(pretrained.logits), entropies(finetuned.logits))
    if dawin == "clustered":
        coefficient = clustered(coefficient)
    outputs = ensemble(pretrained.logits, finetuned.logits, coefficient)
    return alone | {
        "outputs mixed by λ": pretrained._replace(logits=outputs).accuracy,
        "DaWin": pretrained._replace(logits=mixed(coefficient, predict_merged)).accuracy,
    }


def entropies(logits: Float[Tensor, "n k"]) -> Float[Tensor, " n"]:
    """H_i = −Σ p log p of each row, in nats."""
    log_p = logits.double().log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


def coefficients(h0: Float[Tensor, " n"], h1: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """λ_i = (e^{−H₁} + b/w) / (e^{−H₀} + e^{−H₁} + b): the model with the lower entropy gets the larger weight.

    b = ½ (std H₀/mean H₀ + std H₁/mean H₁) and w = (mean H₀ + mean H₁)/mean H₀ over all samples. H₀ are the entropies
    of the pretrained model, H₁ those of the finetuned one. Reference: DaWin (arXiv 2410.03782).
    """
    pretrained, finetuned = (-h0).exp(), (-h1).exp()
    # A model that is certain of every sample has no spread: 0/0 counts as 0.
    variations = [(h.std(correction=0) / h.mean()).nan_to_num(0.0) for h in (h0, h1)]
    b, total = sum(variations) / 2, h0.mean() + h1.mean()
    share = h0.mean() / total if total > 0 else 0.5  # 1/w
    return (finetuned + b * share) / (pretrained + finetuned + b)


def clustered(coefficient: Float[Tensor, " n"], count: int = 3) -> Float[Tensor, " n"]:
    """Each λ replaced by the mean of its component in a mixture of `count` Beta densities."""
    if coefficient.unique().numel() <= count:
        return coefficient.double()
    mixture = fit(coefficient, count)
    return mixture.mean[mixture.log_joint(coefficient.double()).softmax(dim=1).argmax(dim=1)]


def mixed(
    coefficient: Float[Tensor, " n"], predict: Callable[[float, Tensor], Float[Tensor, "m k"]]
) -> Float[Tensor, "n k"]:
    """Logits of every sample under weights interpolated by its own λ, in the samples' order.

    `predict(λ, indices)` returns the logits of the samples with the same λ: one merged model for each distinct value.
    """
    values, group = coefficient.unique(return_inverse=True)
    order = [torch.nonzero(group == index).squeeze(1) for index in range(len(values))]
    rows = [predict(value, indices) for value, indices in zip(values.tolist(), order, strict=True)]
    return torch.cat(rows)[torch.cat(order).argsort()]


def ensemble(
    pretrained: Float[Tensor, "n k"],
    finetuned: Float[Tensor, "n k"],
    coefficient: Float[Tensor, " n"] | float,
) -> Float[Tensor, "n k"]:
    """log[ (1−λ) p₀ + λ p₁ ]: logits of the averaged predictions, with one λ for all or one per sample."""
    lam = torch.as_tensor(coefficient, dtype=torch.float64).reshape(-1, 1)
    log_p0, log_p1 = pretrained.double().log_softmax(dim=1), finetuned.double().log_softmax(dim=1)
    return torch.logaddexp(log_p0 + torch.log1p(-lam), log_p1 + lam.log()).float()


class Mixture(NamedTuple):
    """A mixture of Beta densities on (0, 1): shape parameters and weight of each component."""

    a: Float[Tensor, " k"]
    b: Float[Tensor, " k"]
    weight: Float[Tensor, " k"]

    @property
    def mean(self) -> Float[Tensor, " k"]:
        return self.a / (self.a + self.b)

    def log_joint(self, x: Float[Tensor, " n"]) -> Float[Tensor, "n k"]:
        """Log of weight times density; its softmax is the posterior probability of each component."""
        x = x.clamp(EDGE, 1 - EDGE)[:, None]
        norm = torch.lgamma(self.a + self.b) - torch.lgamma(self.a) - torch.lgamma(self.b)
        return self.weight.log() + norm + (self.a - 1) * x.log() + (self.b - 1) * torch.log1p(-x)


def fit(x: Float[Tensor, " n"], count: int = 3) -> Mixture:
    """EM with moment matching from a k-means start, until the mean log-likelihood rises by less than 1e-4."""
    x = x.double()
    membership = torch.nn.functional.one_hot(clusters(x, count), count).double()
    mixture, previous = _matched(x, membership), -torch.inf
    for _ in range(200):
        joint = mixture.log_joint(x)
        likelihood = float(joint.logsumexp(dim=1).mean())
        if likelihood - previous < 1e-4:
            break
        previous = likelihood
        mixture = _matched(x, joint.softmax(dim=1))
    return mixture


def clusters(x: Float[Tensor, " n"], count: int) -> Int[Tensor, " n"]:
    """One-dimensional k-means from evenly spaced quantiles; deterministic."""
    levels = (torch.arange(count, dtype=x.dtype) + 0.5) / count
    centres = torch.quantile(x, levels)
    for _ in range(100):
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
