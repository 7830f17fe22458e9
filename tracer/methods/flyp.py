"""FLYP: finetune like you pretrain, with the contrastive loss on both towers."""

from __future__ import annotations

from tracer.core.terms import contrastive
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.models.trainable import Towers, towers


def flyp(*, targets: Targets = "class", tune: Towers = "both") -> Method:
    """Contrastive loss on (image, prompt) pairs; trains both towers.

    The temperature is trained too.

    Args:
        targets: positives of an image: all texts of its "class", or its own "pair" only, as in the paper.
        tune: train "both" towers and the temperature, the "image" tower, "norms", "biases", or "last-6" blocks.
    """
    return Method(
        (Stage(contrastive(targets), tune=towers(tune)),),
        title="FLYP",
        paper="arXiv:2212.00638",
        year=2023,
        matter=("lr", "epochs", "targets"),
    )
