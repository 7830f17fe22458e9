"""L2-SP: finetuning with a spring to the pretrained weights."""

from __future__ import annotations

from typing import Literal

from tracer.method import Method, Stage
from tracer.terms import classify, contrastive
from tracer.tether import L2SP
from tracer.tune import ImageTower, Towers, towers


def l2sp(
    *,
    strength: float = 0.01,
    form: Literal["loss", "decoupled"] = "loss",
    loss: Literal["classify", "contrastive"] = "classify",
    tune: Towers = "both",
) -> Method:
    """A task loss plus (λ/2)‖θ − θ₀‖² over every parameter that was pretrained; a head is held to its start.

    Args:
        strength: λ, how strongly weights are pulled back.
        form: "loss" adds the gradient, "decoupled" decays toward θ₀ beside Adam; the two differ.
        loss: the task loss: a classification head on the image tower, or the contrastive loss.
        tune: under the contrastive loss, "both" towers or the "image" tower alone.
    """
    if loss == "classify":
        minimise, moved = classify(), ImageTower()
    else:
        minimise, moved = contrastive("class"), towers(tune)
    tether = L2SP(strength, form) if strength else None
    return Method(
        (Stage(minimise, tune=moved, tether=tether),), title="L2-SP", paper="arXiv:1802.01483", year=2018
    )
