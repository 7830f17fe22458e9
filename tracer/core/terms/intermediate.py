"""Distillation of the intermediate features of the image tower (LDIFS, arXiv 2308.13320)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.batch import Scene, required
from tracer.core.objective import Term


def token_features() -> Term:
    """LDIFS as its authors' code computes it: squared distance between tokens of student and teacher at five taps.

    L = mean over images, taps, tokens l and features d of ( Φ_S[l, d]/‖Φ_S[:, d]‖ − Φ_T[l, d]/‖Φ_T[:, d]‖ )². The norm
    is over the tokens of an image, dimension 1 of [image, token, feature], as in that code.
    """

    def formula(scene: Scene) -> Tensor:
        changes = _changes(scene, "tokens", lambda tokens: normalize(tokens, dim=1, eps=1e-10))
        return torch.stack([change.square().mean() for change in changes]).mean()

    return Term("token_features", formula, needs=frozenset({"tokens", "teacher"}))


def intermediate(unit: bool = True) -> Term:
    """A variant of LDIFS: squared distance between the pooled block outputs of student and teacher.

    L = mean_i ‖Φ_S(x_i) − Φ_T(x_i)‖², Φ the concatenated, pooled block outputs, each of unit length with unit=True.
    """

    def formula(scene: Scene) -> Tensor:
        changes = _changes(scene, "features", lambda block: normalize(block, dim=1) if unit else block)
        return torch.stack([change.square().sum(dim=1) for change in changes]).sum(dim=0).mean()

    return Term("intermediate", formula, needs=frozenset({"features", "teacher"}))


def _changes(
    scene: Scene, field: Literal["tokens", "features"], scaled: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """Student minus teacher, layer by layer, each scaled first."""
    message = f"distillation needs the {field} of student and teacher"
    student, teacher = (required(getattr(each, field), message) for each in scene.taught)
    return [scaled(own) - scaled(other.detach()) for own, other in zip(student, teacher, strict=True)]
