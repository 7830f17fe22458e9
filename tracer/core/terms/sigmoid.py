"""Pairwise sigmoid losses, for models with a logit bias (SigLIP, arXiv 2303.15343).

Such a model gives every image-text pair (i, j) its own probability σ(l_ij), l_ij = s ⟨u_i, v_j⟩ + b. A loss is a sum
over pairs, so it is added up block by block: each process takes the rows of its own images, a block is computed again
in the backward pass, and no matrix of all pairs is ever stored.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus
from torch.utils.checkpoint import checkpoint

from tracer.core.batch import Embedding, Share

BLOCK = 1024  # rows of pairs computed at a time

Logits = Callable[[slice], Tensor]  # rows of a matrix of pairs


def pair_logits(
    model: Embedding, rows: Float[Tensor, "n d"] | None, columns: Float[Tensor, "n d"] | None
) -> Logits:
    """Rows of s R Cᵀ + b, with the scale and the bias of `model`."""
    bias = model.bias
    if rows is None or columns is None or bias is None:
        raise ValueError("a sigmoid loss needs image and text embeddings and a model with a logit bias")
    return lambda block: model.scale * rows[block] @ columns.T + bias


def sigmoid_loss(
    logits: Logits, positive: Callable[[slice], Bool[Tensor, "r n"]], count: int, share: Share
) -> Float[Tensor, ""]:
    """(1/n) Σ_ij −log σ(± l_ij), + for positive pairs and − for the others."""

    def value(rows: slice) -> Tensor:
        own = logits(rows)
        return softplus(torch.where(positive(rows), -own, own)).sum()

    return mean_over_pairs(value, count, share)


def bernoulli_divergence(target: Logits, logits: Logits, count: int, share: Share) -> Float[Tensor, ""]:
    """(1/n) Σ_ij KL( Bernoulli(σ(t_ij)) ‖ Bernoulli(σ(l_ij)) ); no gradient flows to the target.

    With ζ(x) = log(1 + eˣ), log σ(x) = x − ζ(x) and log(1 − σ(x)) = −ζ(x), so that each KL is
    σ(t) (t − l) + ζ(l) − ζ(t).
    """

    def value(rows: slice) -> Tensor:
        t, own = target(rows).detach(), logits(rows)
        return (t.sigmoid() * (t - own) + softplus(own) - softplus(t)).sum()

    return mean_over_pairs(value, count, share)


def bernoulli_entropy(target: Logits, logits: Logits, count: int, share: Share) -> Float[Tensor, ""]:
    """(1/n) Σ_ij H( Bernoulli(σ(t_ij)), Bernoulli(σ(l_ij)) ) = (1/n) Σ_ij ζ(l) − σ(t) l."""

    def value(rows: slice) -> Tensor:
        own = logits(rows)
        return (softplus(own) - target(rows).detach().sigmoid() * own).sum()

    return mean_over_pairs(value, count, share)


def mean_over_pairs(value: Callable[[slice], Tensor], count: int, share: Share) -> Float[Tensor, ""]:
    """1/n times the sum of `value` over the rows of all processes, computed in blocks of BLOCK rows."""
    own = share.rows(count)
    blocks = [slice(start, min(start + BLOCK, own.stop)) for start in range(own.start, own.stop, BLOCK)]
    if len(blocks) == 1:
        return share.total(value(blocks[0])) / count
    parts = [checkpoint(value, block, use_reentrant=False, preserve_rng_state=False) for block in blocks]
    return share.total(torch.stack(parts).sum()) / count  # pyright: ignore[reportArgumentType, reportCallIssue]
