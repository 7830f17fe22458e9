"""DaWin's per-sample interpolation of weights, and the ensemble of two models' outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.merging.mixture import fit


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
    return mixture.mean[mixture.responsibilities(coefficient.double()).argmax(dim=1)]


def mixed(
    coefficient: Float[Tensor, " n"], predict: Callable[[float, Tensor], Float[Tensor, "m k"]]
) -> Float[Tensor, "n k"]:
    """Logits of every sample under weights interpolated by its own λ, in the samples' order.

    `predict(λ, indices)` returns the logits of the samples with the same λ: one merged model for each distinct value.
    """
    values, group = coefficient.unique(return_inverse=True)
    rows: list[Tensor] = []
    order: list[Tensor] = []
    for index, value in enumerate(values.tolist()):
        indices = torch.nonzero(group == index).squeeze(1)
        rows.append(predict(value, indices))
        order.append(indices)
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
