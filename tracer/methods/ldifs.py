"""LDIFS: finetuning with a penalty on the change of intermediate features."""

from __future__ import annotations

from typing import Literal

from tracer.core.teachers import Frozen
from tracer.core.terms import intermediate, token_features
from tracer.methods.base import Method
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers

Variant = Literal["authors", "blocks"]


def ldifs(
    *,
    variant: Variant = "authors",
    strength: float | None = None,
    unit: bool = True,
    loss: Loss = "classify",
    tune: Towers = "both",
) -> Method:
    """A task loss plus λ times the squared change of image features.

    The features are those of intermediate blocks of the image tower.

    Args:
        variant: "authors": all tokens at five depths, as in their code; "blocks": one vector of each block.
        strength: λ, the weight of the distance; by default 10 as published, 1 with "blocks".
        unit: with "blocks", normalise each block's output to unit length first.
        loss: the task loss: "classify" with a head on the image tower, or "contrastive".
        tune: with the contrastive loss, train "both" towers, the "image" tower, "norms", "biases" or "last-6" blocks.
    """
    default, distance = (10.0, token_features()) if variant == "authors" else (1.0, intermediate(unit))
    weight = default if strength is None else strength
    return Method(
        (task(loss, weight * distance, tune=tune, teacher=Frozen()),),
        title="LDIFS",
        paper="arXiv:2308.13320",
        year=2024,
        matter=("strength", "lr"),
    )
