"""LDIFS: finetuning whose every block stays near what it was."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms import intermediate
from tracer.methods.base import Method
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers


def ldifs(
    *, strength: float = 1.0, unit: bool = True, loss: Loss = "classify", tune: Towers = "both"
) -> Method:
    """A task loss plus λ times the squared distance of all block outputs of the image tower.

    Known from its abstract: λ, the pooling and the scaling of the features are unverified.

    Args:
        strength: λ, the weight of the distance.
        unit: divide each block's output by its length first.
        loss: the task loss: a classification head on the image tower, or the contrastive loss.
        tune: under the contrastive loss, "both" towers or the "image" tower alone.
    """
    return Method(
        (task(loss, strength * intermediate(unit), tune=tune, teacher=Frozen()),),
        title="LDIFS",
        paper="arXiv:2308.13320",
        year=2024,
        matter=("strength", "lr"),
    )
