"""FLYP: finetune like you pretrain, with the contrastive loss on both towers."""

from __future__ import annotations

from tracer.method import Method, Stage
from tracer.terms import contrastive
from tracer.terms.contrastive import Targets
from tracer.tune import Towers, towers


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
