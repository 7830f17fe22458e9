"""Model Stock: estimate the centre of the finetuned weights from the angles between a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.weights import Weights, mean

By = Literal["tensor", "row"]


def cosine(changes: Sequence[Float[Tensor, "r m"]]) -> Float[Tensor, " r"]:
    """Mean cosine over all pairs of changes, row by row, clamped to [0, 1].

    Bitwise equal changes have cosine 1, also when both are zero. A zero change has cosine 0 with any other. There is
    no lower bound on the lengths: biases and rows of a finetuned model change by 1e-4 and less.
    """
    cosines = []
    for a, b in combinations([change.double() for change in changes], 2):
        lengths = a.norm(dim=1) * b.norm(dim=1)
        cos = (a * b).sum(dim=1) / torch.where(lengths == 0, 1.0, lengths)
        cosines.append(torch.where((a == b).all(dim=1), 1.0, cos))
    return torch.stack(cosines).mean(dim=0).clamp(0, 1)


def ratio(cos: Float[Tensor, " r"], count: int) -> Float[Tensor, " r"]:
    """t = k cosθ / (1 + (k−1) cosθ): the interpolation weight of the finetuned mean."""
    return count * cos / (1 + (count - 1) * cos)


def stock(start: Weights, models: Sequence[Weights], by: By = "tensor") -> tuple[Weights, dict[str, float]]:
    """w = t · mean(w_i) + (1−t) · w₀ per tensor or per row, and each tensor's mean cosine.

    Computed in float64 and rounded once, because the changes of a finetuned model are a few roundings of fp32.
    Reference: Model Stock (arXiv 2403.19522).
    """
    if len(models) < 2:
        raise UserError(f"Model Stock needs two or more finetuned models, not {len(models)}")
    merged, cosines = {}, {}
    for name, origin in start.items():
        values = [model[name] for model in models]
        if not origin.is_floating_point():
            merged[name] = values[0].clone()
            continue
        rows = len(origin) if by == "row" and origin.ndim > 1 else 1
        cos = cosine([(value.double() - origin.double()).reshape(rows, -1) for value in values])
        t = ratio(cos, len(models))[:, None].expand(rows, origin.numel() // rows).reshape(origin.shape)
        merged[name] = torch.lerp(origin.double(), mean(values), t).to(origin.dtype)
        cosines[name] = float(cos.mean())
    return merged, cosines
