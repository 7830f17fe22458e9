"""L2-SP: finetuning with an L2 penalty on the distance from the pretrained weights."""

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
    """A task loss plus (λ/2)‖θ − θ₀‖² over all pretrained parameters.

    Args:
        strength: λ, the weight of the penalty.
        form: "loss" adds the penalty's gradient; "decoupled" decays toward θ₀ outside Adam, as AdamW does.
        held_head: apply the penalty to the classification head too, relative to its initial weights.
        loss: the task loss: "classify" with a head on the image tower, or "contrastive".
        tune: with the contrastive loss, train "both" towers, the "image" tower, "norms", "biases" or "last-6" blocks.
    """
    regularizer = L2SP(strength, form, held_head) if strength else None
    return Method(
        (task(loss, tune=tune, regularizer=regularizer),),
        title="L2-SP",
        paper="arXiv:1802.01483",
        year=2018,
        matter=("strength", "form", "lr"),
    )
