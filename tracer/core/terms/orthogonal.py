"""A penalty that keeps the columns, or the rows, of the image projection orthonormal."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.linalg import matrix_norm

from tracer.core.batch import Scene
from tracer.core.errors import unknown
from tracer.core.objective import Term

Side = Literal["columns", "rows"]


def orthogonal(of: Side = "columns") -> Term:
    """‖P_vᵀ P_v − I‖_F of the image projection P_v (width × embedding), not squared; 0 for orthonormal columns.

    of="rows" is ‖P_v P_vᵀ − I‖_F, as the released code has it for ResNets, whose projection is stored transposed: 2048
    rows of a ResNet-50 in 1024 dimensions cannot be orthonormal. Reference: CaRot (arXiv 2311.01723).
    """
    if of not in get_args(Side):
        raise unknown("side of the projection", of, get_args(Side))

    def formula(scene: Scene) -> Tensor:
        if scene.student.projections is None:
            raise ValueError("orthogonal needs the towers' projections")
        image, _ = scene.student.projections
        product = image.T @ image if of == "columns" else image @ image.T
        return matrix_norm(product - torch.eye(len(product), dtype=image.dtype, device=image.device))

    return Term("orthogonal", formula, needs=frozenset({"projections"}))
