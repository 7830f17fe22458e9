"""Weights as tensors by name, with checks of names, shapes and finiteness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tracer.core.errors import UserError

Weights = dict[str, Tensor]


def mean(tensors: Sequence[Tensor]) -> Tensor:
    """The mean in float64; bitwise the tensor itself if all are equal."""
    first = tensors[0].double()
    return first + sum(tensor.double() - first for tensor in tensors[1:]) / len(tensors)


def check_fit(
    weights: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, what: str, owner: str
) -> None:
    """Raise UserError, naming the first misfit, unless names, shapes and kinds of numbers are the expected ones."""
    misfits = sorted(expected.keys() ^ weights.keys())
    misfits += [name for name in expected if name in weights and weights[name].shape != expected[name].shape]
    if misfits:
        raise UserError(f"{what} do not fit {owner}: {len(misfits)} misfits, e.g. {misfits[0]}")
    for name, tensor in expected.items():
        if weights[name].is_complex() or weights[name].is_floating_point() != tensor.is_floating_point():
            kinds = f"{weights[name].dtype}, not {tensor.dtype}"
            raise UserError(f"{what} do not fit {owner}: {name} holds numbers of type {kinds}")


def check_finite(weights: Mapping[str, Tensor], *, what: str) -> None:
    """Raise UserError, naming the first such tensor, if weights hold NaN or infinity."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(f"{what} are not finite: {name} holds NaN or infinity")
