"""Distillation of the intermediate features of the image tower (LDIFS, arXiv 2308.13320)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.batch import Scene
from tracer.core.objective import Term


def token_features() -> Term:
    """LDIFS as its authors' code computes it: squared distance between tokens of student and teacher at five taps.

    L = mean over images, taps, tokens l and features d of ( Φ_S[l, d]/‖Φ_S[:, d]‖ − Φ_T[l, d]/‖Φ_T[:, d]‖ )². The norm
    is over the tokens of an image, dimension 1 of [image, token, feature], as in that code.
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        if student.tokens is None or teacher.tokens is None:
            raise ValueError("token_features needs the tokens of student and teacher")
        distances = []
        for tokens, target in zip(student.tokens, teacher.tokens, strict=True):
            a, b = (normalize(x, dim=1, eps=1e-10) for x in (tokens, target.detach()))
            distances.append((a - b).square().mean())
        return torch.stack(distances).mean()

    return Term("token_features", formula, needs=frozenset({"tokens", "teacher"}))


def intermediate(unit: bool = True) -> Term:
    """A variant of LDIFS: squared distance between the pooled block outputs of student and teacher.

    L = mean_i ‖Φ_S(x_i) − Φ_T(x_i)‖², Φ the concatenated, pooled block outputs, each of unit length with unit=True.
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        if student.features is None or teacher.features is None:
            raise ValueError("intermediate needs the block outputs of student and teacher")
        distances = []
        for features, target in zip(student.features, teacher.features, strict=True):
            a, b = (normalize(x, dim=1) if unit else x for x in (features, target.detach()))
            distances.append((a - b).square().sum(dim=1))
        return torch.stack(distances).sum(dim=0).mean()

    return Term("intermediate", formula, needs=frozenset({"features", "teacher"}))
