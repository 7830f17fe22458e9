"""LDIFS: finetuning with a penalty on the change of all intermediate features."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms import intermediate
from tracer.methods.base import Method
from tracer.methods.supervised import Loss, task
from tracer.models.trainable import Towers


def ldifs(
    *, strength: float = 1.0, unit: bool = True, loss: Loss = "classify", tune: Towers = "both"
) -> Method:
    """A task loss plus λ times the squared change of the block outputs of the image tower.

    Written from the abstract: λ, the pooling and the scaling of the features are unverified.

    Args:
        strength: λ, the weight of the distance.
        unit: normalise each block's output to unit length first.
        loss: the task loss: "classify" with a head on the image tower, or "contrastive".
        tune: with the contrastive loss, train "both" towers or the "image" tower only.
    """
    return Method(
        (task(loss, strength * intermediate(unit), tune=tune, teacher=Frozen()),),
        title="LDIFS",
        paper="arXiv:2308.13320",
        year=2024,
        matter=("strength", "lr"),
    )
