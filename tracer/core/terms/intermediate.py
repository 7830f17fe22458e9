"""Distillation of the intermediate features of the image tower (LDIFS)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.batch import Scene
from tracer.core.objective import Term


def intermediate(unit: bool = True) -> Term:
    """LDIFS: squared distance between the block outputs of student and teacher in the image tower.

    L = mean_i ‖Φ_S(x_i) − Φ_T(x_i)‖², Φ the concatenated, pooled block outputs, each of unit length with
    unit=True; whether the authors normalise them is unverified. Reference: LDIFS (arXiv 2308.13320).
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
