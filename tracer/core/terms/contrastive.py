"""The contrastive loss that CLIP was trained with, its label-aware form, and the loss of a second stream of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from tracer.core.batch import Scene, required
from tracer.core.objective import Term
from tracer.core.terms.sigmoid import over_pairs, pair_logits, sigmoid_loss
from tracer.core.validation import require

Targets = Literal["pair", "class"]


def contrastive(targets: Targets = "pair") -> Term:
    """Symmetric InfoNCE between the images and the texts of the batch.

    L = ½ [CE(s U Vᵀ, Y) + CE(s V Uᵀ, Y)], averaged over the batch. With targets="pair", Y = I: only the pair
    itself is positive, other samples of the same class are negatives. With targets="class", Y is uniform over
    the samples of the same label. Reference: CLIP (arXiv 2103.00020); FLYP (arXiv 2212.00638) for finetuning.

    A model with a logit bias gets the sigmoid loss it was trained with: L = (1/n) Σ_ij −log σ(± l_ij), + where
    Y_ij > 0. Reference: SigLIP (arXiv 2303.15343).
    """
    require("targets", targets, Targets)
    return Term("contrastive", lambda scene: contrast(scene, targets), needs=frozenset({"text"}))


def anchored() -> Term:
    """ARF: the loss of `contrastive` on anchor pairs, each pair its own positive.

    Anchors are the task's images with rich captions, or pairs retrieved from data like that of pretraining.
    Reference: ARF (arXiv 2404.06244).
    """

    def formula(scene: Scene) -> Tensor:
        anchors = required(scene.student.anchors, "anchored needs a second stream of pairs")
        return contrast(Scene(anchors, share=scene.share), "pair")

    return Term("anchored", formula, needs=frozenset({"anchors"}))


def contrast(scene: Scene, targets: Targets) -> Float[Tensor, ""]:
    """The formula of `contrastive`."""
    student = scene.student
    if student.bias is not None:
        logits = pair_logits(student, student.image, student.text)
        return over_pairs(scene, sigmoid_loss, logits, matches(scene, targets))
    return symmetric_infonce(student.logits, student.logits.T, positives(scene, targets))


def positives(scene: Scene, targets: Targets) -> Float[Tensor, "n n"] | None:
    """The target distribution of each row; None stands for the identity. A negative label means no class."""
    if targets == "pair":
        return None
    weight = matches(scene, targets)(slice(None)).to(scene.student.image.dtype)
    return weight / weight.sum(dim=1, keepdim=True)


def matches(scene: Scene, targets: Targets) -> Callable[[slice], Bool[Tensor, "r n"]]:
    """Rows of the matrix of positive pairs: each with itself, and with targets="class" those of the same label."""
    label, image = scene.label, scene.student.image
    if label is None and targets == "class":
        raise ValueError('targets="class" needs labels in the scene')
    index = torch.arange(len(image), device=image.device)

    def positive(rows: slice) -> Tensor:
        itself = index[rows, None] == index[None, :]
        if label is None or targets == "pair":
            return itself
        return itself | (label[rows, None] == label[None, :]) & (label[rows] >= 0)[:, None]

    return positive


def symmetric_infonce(
    image_logits: Float[Tensor, "n n"],
    text_logits: Float[Tensor, "n n"],
    positive: Float[Tensor, "n n"] | None,
) -> Float[Tensor, ""]:
    """Mean of the cross-entropies of images over texts and of texts over images."""
    target = torch.arange(len(image_logits), device=image_logits.device) if positive is None else positive
    return (cross_entropy(image_logits, target) + cross_entropy(text_logits, target)) / 2
