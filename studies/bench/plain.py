"""The reference: FLYP and TRACER as released recipes do them, with open_clip and torch alone.

77 tokens for every caption, open_clip's ClipLoss, AdamW without fusion, a teacher that is updated in a loop over
its parameters, and `.item()` at every step. Nothing of tracer is imported here.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  (as the recipes have it)


class Plain:
    """A student, its teacher and its optimiser."""

    def __init__(self, clip: Any, loss: Any, *, lr: float = 1e-5, decay: float = 0.1) -> None:
        self.student = clip.train()
        self.teacher = deepcopy(clip).eval().requires_grad_(False)
        self.contrast = loss
        self.optimiser = torch.optim.AdamW(
            clip.parameters(), lr=lr, weight_decay=decay, foreach=False, fused=False
        )

    def flyp(self, images: Tensor, tokens: Tensor) -> float:
        """One step of contrastive finetuning."""
        image, text, scale = self.student(images, tokens)
        return self._learn(self.contrast(image, text, scale))

    def tracer(self, images: Tensor, tokens: Tensor, weight: float = 0.01) -> float:
        """One step of contrastive finetuning with four distillation terms, then the teacher's update."""
        image, text, scale = self.student(images, tokens)
        with torch.no_grad():
            teacher_image, teacher_text, teacher_scale = self.teacher(images, tokens)
        loss = self.contrast(image, text, scale)
        loss = loss + 0.9 * distillation(image, text, scale, teacher_image, teacher_text, teacher_scale)
        value = self._learn(loss)
        self.follow(weight)
        return value

    def follow(self, weight: float) -> None:
        """The teacher moves toward the student, one parameter after the other."""
        with torch.no_grad():
            for mine, theirs in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
                mine.copy_((1 - weight) * mine + weight * theirs)

    def _learn(self, loss: Tensor) -> float:
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.item()


def distillation(
    image: Tensor,
    text: Tensor,
    scale: Tensor,
    teacher_image: Tensor,
    teacher_text: Tensor,
    teacher_scale: Tensor,
) -> Tensor:
    """FD, CRD, ICL and CrossKD of TRACER, each written out."""
    target = torch.arange(len(image))
    teacher_logits = teacher_scale * teacher_image @ teacher_text.T
    logits = scale * image @ text.T
    mixed, mixed_text = scale * image @ teacher_text.T, scale * text @ teacher_image.T
    feature = F.mse_loss(image, teacher_image) + F.mse_loss(text, teacher_text)
    relational = (_kl(teacher_logits, logits) + _kl(teacher_logits.T, logits.T)) / 2
    interactive = (F.cross_entropy(mixed, target) + F.cross_entropy(mixed_text, target)) / 2
    cross = (_kl(teacher_logits, mixed) + _kl(teacher_logits.T, mixed_text)) / 2
    return 2000 * feature + relational + interactive + cross


def _kl(teacher: Tensor, student: Tensor) -> Tensor:
    return F.kl_div(F.log_softmax(student, dim=1), F.softmax(teacher, dim=1), reduction="batchmean")
