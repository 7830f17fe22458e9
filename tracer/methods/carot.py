"""CaRot: contrastive finetuning with an orthogonal projection and an EMA teacher that moves rarely."""

from __future__ import annotations

from tracer.core.teachers import EMA, Buffers
from tracer.core.terms import contrastive, cross_frobenius, orthogonal, soft_pairs
from tracer.core.terms.contrastive import Targets
from tracer.core.terms.projections import Side
from tracer.methods.base import Method, Stage
from tracer.models.trainable import Towers, towers


def carot(
    *,
    strength: float = 1.5,
    orthogonality: float = 0.2,
    orthogonal_side: Side = "columns",
    frobenius: float = 0.05,
    momentum: float = 0.9,
    every: float = 0.02,
    targets: Targets = "class",
    tune: Towers = "both",
    buffers: Buffers = "copy",
) -> Method:
    """Contrastive loss, penalties on the projections, and an EMA teacher.

    The two penalties are on the projections; the teacher's labels of the pairs are soft.

    Args:
        strength: λ, the weight of the distillation loss.
        orthogonality: weight of ‖P_vᵀP_v − I‖_F.
        orthogonal_side: of P_v: its "columns", or its "rows" (‖P_v P_vᵀ − I‖_F), as published for ResNets.
        frobenius: weight of ‖P_v P_tᵀ‖_F.
        momentum: momentum of the EMA, ramped up from 0.05 over the first 20 % of training.
        every: interval of the EMA updates: below 1 a fraction of training, else steps; published: 500.
        targets: positives of an image: all texts of its "class", or its own "pair" only, as in the paper.
        tune: train "both" towers and the temperature, the "image" tower, "norms", "biases", or "last-6" blocks.
        buffers: BatchNorm statistics of the teacher: "copy" the student's, "average", or "keep" the pretrained.
    """
    loss = (
        contrastive(targets)
        + frobenius * cross_frobenius()
        + orthogonality * orthogonal(orthogonal_side)
        + strength * soft_pairs()
    )

    def teacher(steps: int) -> EMA:
        interval = max(1, round(every * steps)) if every < 1 else round(every)
        return EMA(momentum=momentum, every=interval, ramp=0.2, ramp_from=0.05)

    return Method(
        (Stage(loss, teacher=teacher, buffers=buffers, tune=towers(tune)),),
        title="CaRot",
        paper="arXiv:2311.01723",
        year=2024,
        matter=("strength", "orthogonality", "every", "lr"),
    )
