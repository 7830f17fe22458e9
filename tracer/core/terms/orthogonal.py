"""A penalty that keeps the columns of the image projection orthonormal."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import matrix_norm

from tracer.core.batch import Scene
from tracer.core.objective import Term


def orthogonal() -> Term:
    """‖P_vᵀ P_v − I‖_F of the image projection, not squared; 0 for orthonormal columns.

    Reference: CaRot (arXiv 2311.01723).
    """

    def formula(scene: Scene) -> Tensor:
        if scene.student.projections is None:
            raise ValueError("orthogonal needs the towers' projections")
        image, _ = scene.student.projections
        identity = torch.eye(image.shape[1], dtype=image.dtype, device=image.device)
        return matrix_norm(image.T @ image - identity)

    return Term("orthogonal", formula, needs=frozenset({"projections"}))
