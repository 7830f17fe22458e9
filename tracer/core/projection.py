"""Projection onto a ball around the pretrained weights, shared by FTP (in training) and TPGM (afterwards)."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Norm = Literal["rows", "whole"]

TINY = 1e-8


def norms(change: Float[Tensor, ...], norm: Norm = "rows") -> Float[Tensor, " r"]:
    """The L1 norm of each row (MARS), or the Euclidean norm of the whole tensor; plus 1e-8.

    A vector or a scalar is one row.
    """
    if norm == "whole":
        return change.norm().view(1) + TINY
    rows = change.flatten(1) if change.ndim > 1 else change.reshape(1, -1)
    return rows.abs().sum(dim=1) + TINY


def project(
    anchor: Float[Tensor, ...],
    value: Float[Tensor, ...],
    radius: Float[Tensor, ""] | float,
    norm: Norm = "rows",
) -> Float[Tensor, ...]:
    """θ₀ + min(1, γ/‖θ − θ₀‖) (θ − θ₀), row by row; values inside the ball are returned bitwise unchanged.

    Differentiable in the radius. Reference: TPGM (arXiv 2303.10720).
    """
    change = value - anchor
    ratio = (radius / norms(change, norm)).clamp(0, 1)
    ratio = ratio.view(-1, *[1] * (change.ndim - 1)) if change.ndim else ratio.squeeze()
    return torch.where(ratio < 1, anchor + ratio * change, value)
