"""Weights: tensors by name, and whether they belong to a model."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from tracer.errors import UserError

Weights = dict[str, Tensor]


def check_fit(given: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, what: str, owner: str) -> None:
    """Refuse weights whose names or shapes are not the expected ones, and name the first of them."""
    misfits = sorted(expected.keys() ^ given.keys())
    misfits += [name for name in expected if name in given and given[name].shape != expected[name].shape]
    if misfits:
        raise UserError(f"{what} do not fit {owner}: {len(misfits)} misfits, e.g. {misfits[0]}")
