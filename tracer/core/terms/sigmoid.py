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

from tracer.core.batch import Embedding, Scene

BLOCK = 1024  # rows of pairs computed at a time

Rows = Callable[[slice], Tensor]  # rows of a matrix of pairs
Loss = Callable[[Tensor, Tensor], Tensor]  # a sum over such rows, of logits and what they are compared with


def pair_logits(
    model: Embedding, rows: Float[Tensor, "n d"] | None, columns: Float[Tensor, "n d"] | None
) -> Rows:
    """Rows of s R Cᵀ + b, with the scale and the bias of `model`."""
    bias = model.bias
    if rows is None or columns is None or bias is None:
        raise ValueError("a sigmoid loss needs image and text embeddings and a model with a logit bias")
    return lambda block: model.scale * rows[block] @ columns.T + bias


def sigmoid_loss(logits: Float[Tensor, "r n"], positive: Bool[Tensor, "r n"]) -> Float[Tensor, ""]:
    """Σ_ij −log σ(± l_ij), + for positive pairs and − for the others."""
    return softplus(torch.where(positive, -logits, logits)).sum()


def bernoulli_divergence(target: Float[Tensor, "r n"], logits: Float[Tensor, "r n"]) -> Float[Tensor, ""]:
    """Σ_ij KL( Bernoulli(σ(t_ij)) ‖ Bernoulli(σ(l_ij)) ); no gradient flows to the target.

    With ζ(x) = log(1 + eˣ), log σ(x) = x − ζ(x) and log(1 − σ(x)) = −ζ(x), so that each KL is
    σ(t) (t − l) + ζ(l) − ζ(t).
    """
    t = target.detach()
    return (t.sigmoid() * (t - logits) + softplus(logits) - softplus(t)).sum()


def bernoulli_entropy(target: Float[Tensor, "r n"], logits: Float[Tensor, "r n"]) -> Float[Tensor, ""]:
    """Σ_ij H( Bernoulli(σ(t_ij)), Bernoulli(σ(l_ij)) ) = Σ_ij ζ(l) − σ(t) l; no gradient flows to the target."""
    return (softplus(logits) - target.detach().sigmoid() * logits).sum()


def over_pairs(scene: Scene, loss: Loss, first: Rows, second: Rows) -> Float[Tensor, ""]:
    """1/n times the sum of a loss over the rows of all processes, computed in blocks of BLOCK rows."""
    count, total = len(scene.student.image), scene.share.total
    own = scene.share.rows(count)
    blocks = [slice(start, min(start + BLOCK, own.stop)) for start in range(own.start, own.stop, BLOCK)]

    def value(rows: slice) -> Tensor:
        return loss(first(rows), second(rows))

    if len(blocks) == 1:
        return total(value(blocks[0])) / count
    parts = [checkpoint(value, block, use_reentrant=False, preserve_rng_state=False) for block in blocks]
    return total(torch.stack(parts).sum()) / count  # pyright: ignore[reportArgumentType, reportCallIssue]
