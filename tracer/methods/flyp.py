"""FLYP: finetune like you pretrain, with the contrastive loss on both towers."""

from __future__ import annotations

from tracer.core.terms import contrastive
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.models.trainable import Towers, towers


def flyp(*, targets: Targets = "class", tune: Towers = "both") -> Method:
    """The contrastive loss on (image, prompt) pairs, both towers and the temperature.

    Args:
        targets: "class" counts all pairs of one label as positive; "pair" is the paper's diagonal.
        tune: "both" towers, or the "image" tower alone, which leaves text and temperature as they are.
    """
    return Method(
        (Stage(contrastive(targets), tune=towers(tune)),),
        title="FLYP",
        paper="arXiv:2212.00638",
        year=2023,
        matter=("lr", "epochs", "targets"),
    )
