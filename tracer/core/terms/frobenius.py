"""A penalty on the product of the image and text projections."""

from __future__ import annotations

from torch import Tensor
from torch.linalg import matrix_norm

from tracer.core.batch import Scene
from tracer.core.objective import Term


def cross_frobenius(squared: bool = False) -> Term:
    """‖P_v P_tᵀ‖_F of the image and text projections, or ½‖P_v P_tᵀ‖²_F with squared=True.

    The theory of TRACER has the squared form (ρ/2)‖W_Iᵀ W_T‖²; the released recipes use 0.05 times the norm.
    """

    def formula(scene: Scene) -> Tensor:
        if scene.student.projections is None:
            raise ValueError("cross_frobenius needs the towers' projections")
        image, text = scene.student.projections
        norm = matrix_norm(image @ text.T)
        return norm.square() / 2 if squared else norm

    return Term("cross_frobenius", formula, needs=frozenset({"projections"}))
