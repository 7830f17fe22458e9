"""ARF: contrastive finetuning beside a second stream of pairs with rich captions."""

from __future__ import annotations

from tracer.core.terms import anchored, contrastive
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage


def arf(*, anchors: str = "", strength: float = 1.0, targets: Targets = "class") -> Method:
    """FLYP plus λ times the same loss on anchor pairs.

    The published weights are not recoverable: λ is unverified.

    Args:
        anchors: data of the anchor pairs: captions of the training images, or pairs retrieved from elsewhere.
        strength: λ, the weight of the anchor pairs.
        targets: "class" counts all pairs of one label as positive; "pair" is the diagonal.
    """
    return Method(
        (Stage(contrastive(targets) + strength * anchored(), anchors=anchors),),
        title="ARF",
        paper="arXiv:2404.06244",
        year=2024,
        matter=("anchors", "strength", "lr"),
    )
