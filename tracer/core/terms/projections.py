"""Penalties on the last linear layers of the two towers, their projections."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.linalg import matrix_norm

from tracer.core.batch import Scene, required
from tracer.core.objective import Term
from tracer.core.validation import require

Side = Literal["columns", "rows"]

_PROJECTIONS = frozenset({"projections"})


def cross_frobenius(squared: bool = False) -> Term:
    """‖P_v P_tᵀ‖_F of the image and text projections, or ½‖P_v P_tᵀ‖²_F with squared=True.

    The theory of TRACER has the squared form (ρ/2)‖W_Iᵀ W_T‖²; the released recipes use 0.05 times the norm.
    """

    def formula(scene: Scene) -> Tensor:
        image, text = required(scene.student.projections, "cross_frobenius needs the towers' projections")
        norm = matrix_norm(image @ text.T)
        return norm.square() / 2 if squared else norm

    return Term("cross_frobenius", formula, needs=_PROJECTIONS)


def orthogonal(of: Side = "columns") -> Term:
    """‖P_vᵀ P_v − I‖_F of the image projection P_v (width × embedding), not squared; 0 for orthonormal columns.

    of="rows" is ‖P_v P_vᵀ − I‖_F, as the released code has it for ResNets, whose projection is stored transposed: 2048
    rows of a ResNet-50 in 1024 dimensions cannot be orthonormal. Reference: CaRot (arXiv 2311.01723).
    """
    require("side of the projection", of, Side)

    def formula(scene: Scene) -> Tensor:
        image, _ = required(scene.student.projections, "orthogonal needs the towers' projections")
        product = image.T @ image if of == "columns" else image @ image.T
        return matrix_norm(product - torch.eye(len(product), dtype=image.dtype, device=image.device))

    return Term("orthogonal", formula, needs=_PROJECTIONS)
