"""Staying close inside the tower, not only at its end."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.batch import Scene
from tracer.core.objective import Term


def intermediate(unit: bool = True) -> Term:
    """LDIFS: the output of every block of the image tower stays where the teacher has it.

    L = mean_i ‖Φ_S(x_i) − Φ_T(x_i)‖², Φ the concatenated, pooled block outputs, each of unit length with
    unit=True; whether the authors scale them is unverified. Reference: LDIFS (arXiv 2308.13320).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        if student.features is None or teacher.features is None:
            raise ValueError("intermediate needs the block outputs of student and teacher")
        gaps = []
        for mine, theirs in zip(student.features, teacher.features, strict=True):
            learned, taught = (normalize(x, dim=1) if unit else x for x in (mine, theirs.detach()))
            gaps.append((learned - taught).square().sum(dim=1))
        return torch.stack(gaps).sum(dim=0).mean()

    return Term("intermediate", formula, needs=frozenset({"features", "teacher"}))
