"""The contrastive loss that CLIP was trained with, and its label-aware form."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from tracer.core.batch import Scene
from tracer.core.errors import unknown
from tracer.core.objective import Term

Targets = Literal["pair", "class"]


def contrastive(targets: Targets = "pair") -> Term:
    """Symmetric InfoNCE between the images and the texts of the batch.

    L = ½ [CE(s U Vᵀ, Y) + CE(s V Uᵀ, Y)], averaged over the batch. With targets="pair", Y = I: only the pair
    itself is positive, other samples of the same class are negatives. With targets="class", Y is uniform over
    the samples of the same label. Reference: CLIP (arXiv 2103.00020); FLYP (arXiv 2212.00638) for finetuning.
    """
    check_targets(targets)

    def formula(scene: Scene) -> Tensor:
        return symmetric_infonce(scene.student.logits, scene.student.logits.T, positives(scene, targets))

    return Term("contrastive", formula, needs=frozenset({"text"}))


def check_targets(targets: str) -> None:
    """Raise UserError unless `targets` is "pair" or "class"."""
    if targets not in ("pair", "class"):
        raise unknown("targets", targets, ("pair", "class"))


def positives(scene: Scene, targets: Targets) -> Float[Tensor, "n n"] | None:
    """The target distribution of each row; None stands for the identity. A negative label means no class."""
    if targets == "pair":
        return None
    if scene.label is None:
        raise ValueError('targets="class" needs labels in the scene')
    label = scene.label
    same: Bool[Tensor, "n n"] = (label[:, None] == label[None, :]) & (label >= 0)[:, None]
    same = same | torch.eye(len(label), dtype=torch.bool, device=label.device)
    weight = same.to(scene.student.image.dtype)
    return weight / weight.sum(dim=1, keepdim=True)


def symmetric_infonce(
    image_logits: Float[Tensor, "n n"],
    text_logits: Float[Tensor, "n n"],
    positive: Float[Tensor, "n n"] | None,
) -> Float[Tensor, ""]:
    """Mean of the cross-entropies of images over texts and of texts over images."""
    target = torch.arange(len(image_logits), device=image_logits.device) if positive is None else positive
    return (cross_entropy(image_logits, target) + cross_entropy(text_logits, target)) / 2
