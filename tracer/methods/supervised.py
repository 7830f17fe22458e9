"""The two task losses that a method may stand on, as a stage. Not a method: no function has this file's name."""

from __future__ import annotations

from typing import Any, Literal, get_args

from tracer.errors import unknown
from tracer.method import Stage
from tracer.objective import Sum
from tracer.terms import classify, contrastive
from tracer.tune import ImageTower, Towers, towers

Loss = Literal["classify", "contrastive"]


def task(loss: Loss, *terms: Sum, tune: Towers = "both", **rest: Any) -> Stage:
    """Cross-entropy of a head on the image tower, or the contrastive loss, plus further terms."""
    if loss not in get_args(Loss):
        raise unknown("task loss", loss, get_args(Loss))
    minimise: Sum = classify() if loss == "classify" else contrastive("class")
    for term in terms:
        minimise = minimise + term
    return Stage(minimise, tune=ImageTower() if loss == "classify" else towers(tune), **rest)
