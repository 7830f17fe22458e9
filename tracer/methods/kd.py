"""KD: finetuning with distillation from the zero-shot classifier."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms import classify, soft_classes
from tracer.methods.base import Method, Stage
from tracer.models.trainable import ImageTower


def kd(*, strength: float = 1.0, temperature: float = 1.0) -> Method:
    """Cross-entropy plus λ KL(zero-shot ‖ student) over the classes.

    Probably the "Static SD" of the TRACER paper (unverified); `static_sd` is our own control.

    Args:
        strength: λ, the weight of the KL.
        temperature: softmax temperature of both distributions.
    """
    return Method(
        (Stage(classify() + strength * soft_classes(temperature), teacher=Frozen(), tune=ImageTower()),),
        title="Knowledge distillation",
        paper="arXiv:1503.02531",
        year=2015,
        matter=("strength", "temperature", "lr"),
    )
