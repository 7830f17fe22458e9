"""Diagnostics of teacher and student on the contrastive task of the batch: do they still differ, and how?"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from tracer.core.batch import Scene
from tracer.core.terms.distill import divergence


def dynamics(scene: Scene | None) -> dict[str, Tensor]:
    """What is logged of a step beside its loss: the student's temperature and bias, and `probes`."""
    if scene is None:
        return {}
    student = scene.student
    bias = {} if student.bias is None else {"bias": student.bias.detach()}
    return {"scale": torch.as_tensor(student.scale).detach(), **bias, **probes(scene)}


@torch.no_grad()
def probes(scene: Scene) -> dict[str, Tensor]:
    """KL, entropies, confidence, agreement and true-pair probability; empty without a teacher or without text.

    All are computed from the image-to-text logits of the batch, each model at its own temperature. `kl` and the names
    that end in `_both` are means over both directions, image to text and text to image, as in the paper's figures.
    """
    scene = scene.shown_to_teacher
    if scene.teacher is None or scene.teacher.text is None or scene.student.text is None:
        return {}
    teacher_logits, student_logits = scene.teacher.logits, scene.student.logits
    teacher, student = log_softmax(teacher_logits, dim=1), log_softmax(student_logits, dim=1)
    teacher_texts, student_texts = log_softmax(teacher_logits.T, dim=1), log_softmax(student_logits.T, dim=1)
    overlap = {}
    if teacher.shape[1] > 5:  # of fewer texts, all are among the first
        shared = (teacher.topk(5).indices[:, :, None] == student.topk(5).indices[:, None, :]).any(dim=2)
        overlap = {"top5_overlap": shared.float().mean()}
    kl = divergence(teacher_logits, student_logits) + divergence(teacher_logits.T, student_logits.T)
    return {
        "kl": kl / 2,
        "teacher_entropy": entropy(teacher),
        "student_entropy": entropy(student),
        "teacher_confidence": confidence(teacher),
        "teacher_entropy_both": (entropy(teacher) + entropy(teacher_texts)) / 2,
        "student_entropy_both": (entropy(student) + entropy(student_texts)) / 2,
        "teacher_confidence_both": (confidence(teacher) + confidence(teacher_texts)) / 2,
        "agreement": (teacher.argmax(dim=1) == student.argmax(dim=1)).float().mean(),
        **overlap,
        "teacher_pair": teacher.diagonal().exp().mean(),
        "student_pair": student.diagonal().exp().mean(),
    }


def entropy(log_probability: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """Mean entropy of the rows, in nats."""
    return -(log_probability.exp() * log_probability).sum(dim=1).mean()


def confidence(log_probability: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """Mean over the rows of their largest probability."""
    return log_probability.exp().amax(dim=1).mean()


@torch.no_grad()
def distance(a: nn.Module, b: nn.Module) -> Tensor:
    """‖θ_a − θ_b‖ over all parameters."""
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return torch.stack([(p.float() - q.float()).norm() for p, q in pairs]).norm()
