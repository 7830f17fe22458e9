"""L2-SP: finetuning with a spring to the pretrained weights."""

from __future__ import annotations

from typing import Literal

from tracer.core.regularizers import L2SP
from tracer.methods.base import Method
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers


def l2sp(
    *,
    strength: float = 0.01,
    form: Literal["loss", "decoupled"] = "loss",
    held_head: bool = True,
    loss: Loss = "classify",
    tune: Towers = "both",
) -> Method:
    """A task loss plus (λ/2)‖θ − θ₀‖² over every parameter that was pretrained.

    Args:
        strength: λ, how strongly weights are pulled back.
        form: "loss" adds the gradient, "decoupled" decays toward θ₀ beside Adam; the two differ.
        held_head: hold the classification head to its start as well.
        loss: the task loss: a classification head on the image tower, or the contrastive loss.
        tune: under the contrastive loss, "both" towers or the "image" tower alone.
    """
    regularizer = L2SP(strength, form, held_head) if strength else None
    return Method(
        (task(loss, tune=tune, regularizer=regularizer),),
        title="L2-SP",
        paper="arXiv:1802.01483",
        year=2018,
        matter=("strength", "form", "lr"),
    )
