"""Contrastive loss on a second stream of image-text pairs (ARF)."""

from __future__ import annotations

from torch import Tensor

from tracer.core.batch import Scene
from tracer.core.objective import Term
from tracer.core.terms.contrastive import contrast


def anchored() -> Term:
    """ARF: the loss of `contrastive` on anchor pairs, each pair its own positive.

    Anchors are the task's images with rich captions, or pairs retrieved from data like that of pretraining.
    Reference: ARF (arXiv 2404.06244).
    """

    def formula(scene: Scene) -> Tensor:
        anchors = scene.student.anchors
        if anchors is None:
            raise ValueError("anchored needs a second stream of pairs")
        return contrast(Scene(anchors, share=scene.share), "pair")

    return Term("anchored", formula, needs=frozenset({"anchors"}))
