"""Is the teacher still teaching? Probes of teacher and student on the batch's own contrastive task."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from tracer.core.batch import Scene
from tracer.core.terms.distill import divergence


@torch.no_grad()
def probes(scene: Scene) -> dict[str, Tensor]:
    """KL, entropies, confidence, agreement and true-pair probability; empty without a teacher over pairs.

    Every measure is of image-to-text similarities in the batch, each model at its own temperature; `kl` is
    the mean of both directions.
    """
    if scene.teacher is None or scene.teacher.text is None or scene.student.text is None:
        return {}
    taught, learned = scene.teacher.logits, scene.student.logits
    teacher, student = log_softmax(taught, dim=1), log_softmax(learned, dim=1)
    best = min(5, taught.shape[1])
    shared = (teacher.topk(best).indices[:, :, None] == student.topk(best).indices[:, None, :]).any(dim=2)
    return {
        "kl": (divergence(taught, learned) + divergence(taught.T, learned.T)) / 2,
        "teacher_entropy": entropy(teacher),
        "student_entropy": entropy(student),
        "teacher_confidence": teacher.exp().amax(dim=1).mean(),
        "agreement": (teacher.argmax(dim=1) == student.argmax(dim=1)).float().mean(),
        "top5_overlap": shared.float().mean(),
        "teacher_pair": teacher.diagonal().exp().mean(),
        "student_pair": student.diagonal().exp().mean(),
    }


def entropy(log_probability: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """Mean entropy of the rows, in nats."""
    return -(log_probability.exp() * log_probability).sum(dim=1).mean()


@torch.no_grad()
def distance(a: nn.Module, b: nn.Module) -> Tensor:
    """‖θ_a − θ_b‖ over all parameters."""
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return torch.stack([(p.float() - q.float()).norm() for p, q in pairs]).norm()
