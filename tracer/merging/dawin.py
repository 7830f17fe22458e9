"""Two models at inference: DaWin's interpolation of weights sample by sample, and the ensemble of outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.merging.mixture import fit


def entropies(logits: Float[Tensor, "n k"], temperature: float = 1.0) -> Float[Tensor, " n"]:
    """H_i = −Σ p log p of each row, in nats."""
    log_p = (logits.double() / temperature).log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


def coefficients(
    known: Float[Tensor, " n"], learned: Float[Tensor, " n"], offset: bool = False
) -> Float[Tensor, " n"]:
    """λ_i = e^{−H₁} / (e^{−H₀} + e^{−H₁}): the surer of the two models has the greater say.

    With `offset`, λ = (e^{−H₁} + b/w) / (e^{−H₀} + e^{−H₁} + b), b = ½ (std H₀/mean H₀ + std H₁/mean H₁) and
    w = (mean H₀ + mean H₁)/mean H₀ over all samples, which must therefore be known together. H₀ are the entropies
    of the pretrained model, H₁ those of the finetuned one. Reference: DaWin (arXiv 2410.03782).
    """
    stay, go = (-known).exp(), (-learned).exp()
    if not offset:
        return go / (stay + go)
    b = (known.std(correction=0) / known.mean() + learned.std(correction=0) / learned.mean()) / 2
    w = (known.mean() + learned.mean()) / known.mean()
    return (go + b / w) / (stay + go + b)


def clustered(share: Float[Tensor, " n"], count: int = 3) -> Float[Tensor, " n"]:
    """Each λ replaced by the mean of its component in a mixture of Beta densities: `count` values in all."""
    if share.unique().numel() <= count:
        return share.double()
    mixture = fit(share, count)
    return mixture.mean[mixture.responsibilities(share.double()).argmax(dim=1)]


def mixed(
    share: Float[Tensor, " n"], predict: Callable[[float, Tensor], Float[Tensor, "m k"]]
) -> Float[Tensor, "n k"]:
    """Logits of every sample under weights interpolated by its own λ, in the samples' order.

    `predict(λ, indices)` answers for the samples that share a λ: one merged model for each value there is.
    """
    values, group = share.unique(return_inverse=True)
    rows: list[Tensor] = []
    places: list[Tensor] = []
    for index, value in enumerate(values.tolist()):
        indices = torch.nonzero(group == index).squeeze(1)
        rows.append(predict(value, indices))
        places.append(indices)
    return torch.cat(rows)[torch.cat(places).argsort()]


def ensemble(
    known: Float[Tensor, "n k"], learned: Float[Tensor, "n k"], share: Float[Tensor, " n"] | float = 0.5
) -> Float[Tensor, "n k"]:
    """log[ (1−λ) p₀ + λ p₁ ]: the logits of the mixed predictions, λ one number or one a sample."""
    far = torch.as_tensor(share, dtype=torch.float64).reshape(-1, 1)
    stay, go = known.double().log_softmax(dim=1), learned.double().log_softmax(dim=1)
    return torch.logaddexp(stay + torch.log1p(-far), go + far.log()).float()
