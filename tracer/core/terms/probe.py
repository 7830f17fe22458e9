"""Distillation of the images' similarity to probe texts, which are not the captions of the task.

R are the embeddings of the probe texts (`Batch.probe`), the same for every image; f is an image embedding,
s an inverse temperature; S is the student, T the teacher.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.batch import Embedding, Scene, required
from tracer.core.objective import Term
from tracer.core.terms.contrastive import matches
from tracer.core.terms.distill import divergence
from tracer.core.validation import require

Direction = Literal["teacher", "student"]  # whose distribution comes first in KL(·‖·)

_PROBED = frozenset({"probe", "teacher"})


def energy() -> Term:
    """Lipsum-FT: squared difference of the logits of student and teacher over random texts.

    L = mean_i 1/(2M) ‖ s_S R f_i^S − s_T R f_i^T ‖² over M texts. Reference: Lipsum-FT (arXiv 2404.00860).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        difference = probe_logits(student) - probe_logits(teacher).detach()
        return difference.square().mean() / 2

    return Term("energy", formula, needs=_PROBED)


def context(direction: Direction = "teacher") -> Term:
    """CAR-FT: KL between the context predictions (photo, sketch, toy…) of teacher and student.

    L = mean_i KL( q_i^T ‖ q_i^S ), q_i = softmax(s C f_i), C one row per context; direction="student" swaps
    the two. The authors published no code, so the direction is unverified and an option. Reference: CAR-FT
    (arXiv 2211.16175).
    """
    require("direction", direction, Direction)

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        logits, target = probe_logits(student), probe_logits(teacher).detach()
        return divergence(target, logits) if direction == "teacher" else divergence(logits, target)

    return Term("context", formula, needs=_PROBED)


def spurious() -> Term:
    """StarFT: KL between the similarities of teacher and student to captions of other classes in nuisance settings.

    L = mean_i KL( softmax(s_T f_i^T R_Tᵀ) ‖ softmax(s_T f_i^S R_Sᵀ) ), text j of R being image j's caption in
    a nuisance setting, over the texts of classes other than i's, both at the teacher's temperature. Reference:
    StarFT (arXiv 2505.13232).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        required(scene.label, "spurious needs labels, to leave out the texts of an image's own class")
        masked = matches(scene, "class")(slice(None))
        target = probe_logits(teacher).detach()
        logits = probe_logits(student._replace(scale=torch.as_tensor(teacher.scale).detach()))
        # Probability 0 after the softmax, but finite: with −∞ the KL would be 0 · (∞ − ∞) = NaN.
        lowest = torch.finfo(target.dtype).min / 2
        return divergence(target.masked_fill(masked, lowest), logits.masked_fill(masked, lowest))

    return Term("spurious", formula, needs=_PROBED)


def probe_logits(embedding: Embedding) -> Float[Tensor, "n k"]:
    """Scaled similarity of every image to every probe text, plus the bias if the model has one."""
    probe = required(embedding.probe, "this embedding has no probe: the method sets no probe texts")
    logits = embedding.scale * embedding.image @ probe.T
    return logits if embedding.bias is None else logits + embedding.bias
