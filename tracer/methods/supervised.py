"""The two task losses, as a stage. Not a method."""

from __future__ import annotations

from typing import Any, Literal

from tracer.core.errors import UserError
from tracer.core.objective import Sum
from tracer.core.terms import classify, contrastive
from tracer.methods.base import Stage
from tracer.models.trainable import ImageTower, Towers, towers

Loss = Literal["classify", "contrastive"]


def task(loss: Loss, *terms: Sum, tune: Towers = "both", **rest: Any) -> Stage:
    """A stage with cross-entropy on a head of the image tower, or the contrastive loss, plus further terms.

    Raises UserError for an unknown choice of `tune`, and for any with the loss that trains a head, which trains the
    whole image tower.
    """
    chosen = towers(tune)
    if loss == "classify" and chosen != towers("both"):
        raise UserError(
            f"--tune {tune} belongs to --loss contrastive, and --loss classify trains the whole image tower: "
            "give --loss contrastive, or leave --tune out"
        )
    total: Sum = classify() if loss == "classify" else contrastive("class")
    for term in terms:
        total = total + term
    return Stage(total, tune=ImageTower() if loss == "classify" else chosen, **rest)
