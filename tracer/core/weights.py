"""Weights: tensors by name, whether they belong to a model, and whether they are numbers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tracer.core.errors import UserError

Weights = dict[str, Tensor]


def check_fit(given: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, what: str, owner: str) -> None:
    """Refuse weights whose names or shapes are not the expected ones, and name the first of them."""
    misfits = sorted(expected.keys() ^ given.keys())
    misfits += [name for name in expected if name in given and given[name].shape != expected[name].shape]
    if misfits:
        raise UserError(f"{what} do not fit {owner}: {len(misfits)} misfits, e.g. {misfits[0]}")


def check_finite(given: Mapping[str, Tensor], *, what: str) -> None:
    """Refuse weights that hold NaN or infinity, and name the first of them."""
    for name, tensor in given.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(f"{what} are not finite: {name} holds NaN or infinity")
