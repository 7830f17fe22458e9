"""Model Stock: the point nearest to the centre of all finetuned weights, found from angles alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.weights import Weights

By = Literal["tensor", "row"]

TINY = 1e-6  # below this product of lengths an angle means nothing


def cosine(changes: Sequence[Float[Tensor, "r m"]]) -> Float[Tensor, " r"]:
    """Mean cosine over all pairs of changes, row by row, clamped to [0, 1].

    Where two changes are equal to the last bit the cosine is 1, and so it is where nothing has moved.
    """
    found = []
    for a, b in combinations([change.double() for change in changes], 2):
        lengths = a.norm(dim=1) * b.norm(dim=1)
        angle = (a * b).sum(dim=1) / lengths.clamp(min=TINY)
        found.append(torch.where((a == b).all(dim=1), 1.0, angle))
    return torch.stack(found).mean(dim=0).clamp(0, 1)


def ratio(cos: Float[Tensor, " r"], count: int) -> Float[Tensor, " r"]:
    """t = k cosθ / (1 + (k−1) cosθ): how far to go from the pretrained weights to the finetuned mean."""
    return count * cos / (1 + (count - 1) * cos)


def stock(start: Weights, models: Sequence[Weights], by: By = "tensor") -> tuple[Weights, dict[str, float]]:
    """w = t · mean(w_i) + (1−t) · w₀ for every tensor or every row of it, and each tensor's mean cosine.

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
        cos = cosine([(value - origin).reshape(rows, -1) for value in values])
        far = ratio(cos, len(models)).to(origin.dtype).view(-1, *[1] * (origin.ndim - 1))
        mean = _mean(values)
        merged[name] = torch.lerp(origin, mean, far.expand_as(mean) if origin.ndim else far.reshape(()))
        cosines[name] = float(cos.mean())
    return merged, cosines


def stock_weights(start: Weights, models: Sequence[Weights], by: By = "tensor") -> Weights:
    """The merge alone, for students that meet while they train."""
    return stock(start, models, by)[0]


def _mean(values: Sequence[Tensor]) -> Tensor:
    """The mean, written so that the mean of equal tensors is that tensor bit for bit."""
    mean = values[0]
    for count, value in enumerate(values[1:], start=2):
        mean = torch.lerp(mean, value, 1 / count)
    return mean
