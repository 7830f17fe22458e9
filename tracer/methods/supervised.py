"""The two task losses that a method may stand on, as a stage. Not a method: no function has this file's name."""

from __future__ import annotations

from typing import Any, Literal, get_args

from tracer.core.errors import unknown
from tracer.core.objective import Sum
from tracer.core.terms import classify, contrastive
from tracer.methods.base import Stage
from tracer.models.trainable import ImageTower, Towers, towers

Loss = Literal["classify", "contrastive"]


def task(loss: Loss, *terms: Sum, tune: Towers = "both", **rest: Any) -> Stage:
    """Cross-entropy of a head on the image tower, or the contrastive loss, plus further terms."""
    if loss not in get_args(Loss):
        raise unknown("task loss", loss, get_args(Loss))
    minimise: Sum = classify() if loss == "classify" else contrastive("class")
    for term in terms:
        minimise = minimise + term
    return Stage(minimise, tune=ImageTower() if loss == "classify" else towers(tune), **rest)
