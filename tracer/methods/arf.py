"""ARF: contrastive finetuning with a second stream of pairs that have rich captions."""

from __future__ import annotations

from tracer.core.terms import anchored, contrastive
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage


def arf(*, anchors: str = "", strength: float = 1.0, targets: Targets = "class") -> Method:
    """FLYP plus λ times the contrastive loss on anchor pairs.

    The published weight λ could not be verified.

    Args:
        anchors: data of the anchor pairs: the training images with rich captions, or retrieved pairs.
        strength: λ, the weight of the anchor pairs.
        targets: positives of an image: all texts of its "class", or its own "pair" only.
    """
    return Method(
        (Stage(contrastive(targets) + strength * anchored(), anchors=anchors),),
        title="ARF",
        paper="arXiv:2404.06244",
        year=2024,
        matter=("anchors", "strength", "lr"),
    )
