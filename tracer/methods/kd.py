"""KD: finetuning that keeps the zero-shot classifier's opinion of every class."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms import classify, soft_classes
from tracer.methods.base import Method, Stage
from tracer.models.trainable import ImageTower


def kd(*, strength: float = 1.0, temperature: float = 1.0) -> Method:
    """Cross-entropy plus λ KL(zero-shot ‖ student) over the classes.

    The paper's "Static SD" is probably this one (unverified); `static_sd` is the control of ours.

    Args:
        strength: λ, the weight of the teacher's opinion.
        temperature: softens both distributions.
    """
    return Method(
        (Stage(classify() + strength * soft_classes(temperature), teacher=Frozen(), tune=ImageTower()),),
        title="Knowledge distillation",
        paper="arXiv:1503.02531",
        year=2015,
        matter=("strength", "temperature", "lr"),
    )
