"""CaRot: contrastive finetuning with an orthogonal projection, taught by a sparse EMA of itself."""

from __future__ import annotations

from tracer.core.teachers import EMA
from tracer.core.terms import contrastive, cross_frobenius, orthogonal, soft_pairs
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage


def carot(
    *,
    strength: float = 1.5,
    orthogonality: float = 0.2,
    frobenius: float = 0.05,
    momentum: float = 0.9,
    every: float = 0.02,
    targets: Targets = "class",
) -> Method:
    """The contrastive loss, two penalties on the projections, and soft labels from the teacher.

    Args:
        strength: λ, the weight of self-distillation.
        orthogonality: weight of ‖P_vᵀP_v − I‖_F.
        frobenius: weight of ‖P_v P_tᵀ‖_F.
        momentum: of the teacher, reached from 0.05 over the first fifth of training.
        every: between two moves of the teacher: a share of training below 1, steps from 1 on; published: 500.
        targets: "class" counts all pairs of one label as positive; "pair" is the paper's diagonal.
    """
    loss = (
        contrastive(targets)
        + frobenius * cross_frobenius()
        + orthogonality * orthogonal()
        + strength * soft_pairs()
    )

    def teacher(steps: int) -> EMA:
        interval = max(1, round(every * steps)) if every < 1 else round(every)
        return EMA(momentum=momentum, every=interval, ramp=0.2, ramp_from=0.05)

    return Method(
        (Stage(loss, teacher=teacher),),
        title="CaRot",
        paper="arXiv:2311.01723",
        year=2024,
        matter=("strength", "orthogonality", "every", "lr"),
    )
