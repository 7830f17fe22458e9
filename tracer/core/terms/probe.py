"""What probe texts show: images keep their similarity to texts that the task never asks about.

R are the embeddings of further texts (`Batch.probe`), the same ones for every image; f is an image embedding,
s an inverse temperature; S is the student, T the teacher.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.batch import Embedding, Scene
from tracer.core.errors import unknown
from tracer.core.objective import Term
from tracer.core.terms.distill import divergence

Direction = Literal["teacher", "student"]  # whose distribution comes first in KL(·‖·)

_PROBED = frozenset({"probe", "teacher"})


def energy() -> Term:
    """Lipsum-FT: random texts are as near to each image as they were for the teacher.

    L = mean_i 1/(2M) ‖ s_S R f_i^S − s_T R f_i^T ‖² over M texts. Reference: Lipsum-FT (arXiv 2404.00860).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        gap = probe_logits(student) - probe_logits(teacher).detach()
        return gap.square().mean() / 2

    return Term("energy", formula, needs=_PROBED)


def context(direction: Direction = "teacher") -> Term:
    """CAR-FT: images keep the context (photo, sketch, toy…) in which the teacher sees them.

    L = mean_i KL( q_i^T ‖ q_i^S ), q_i = softmax(s C f_i), C one row a context; direction="student" exchanges
    the two. No code was published: the direction is unverified, hence a choice. Reference: CAR-FT
    (arXiv 2211.16175).
    """
    if direction not in get_args(Direction):
        raise unknown("direction", direction, get_args(Direction))

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        learned, taught = probe_logits(student), probe_logits(teacher).detach()
        return divergence(taught, learned) if direction == "teacher" else divergence(learned, taught)

    return Term("context", formula, needs=_PROBED)


def spurious() -> Term:
    """StarFT: an image's similarity to what is beside the point (other classes in odd settings) stays.

    L = mean_i KL( softmax(s_T f_i^T R_Tᵀ) ‖ softmax(s_T f_i^S R_Sᵀ) ), text j of R being image j's caption in
    a nuisance setting, without the texts of i's own class, both at the teacher's temperature. Reference:
    StarFT (arXiv 2505.13232).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        if scene.label is None:
            raise ValueError("spurious needs labels, to pass over texts of an image's own class")
        own = scene.label[:, None] == scene.label[None, :]
        same = own | torch.eye(len(own), dtype=torch.bool, device=own.device)
        taught = probe_logits(teacher).detach()
        learned = probe_logits(student._replace(scale=torch.as_tensor(teacher.scale).detach()))
        # No softmax notices such a logit, yet it is finite, so that 0 · (difference of two of them) is 0.
        never = torch.finfo(taught.dtype).min / 2
        return divergence(taught.masked_fill(same, never), learned.masked_fill(same, never))

    return Term("spurious", formula, needs=_PROBED)


def probe_logits(embedding: Embedding) -> Float[Tensor, "n k"]:
    """Scaled similarity of every image to every probe text."""
    if embedding.probe is None:
        raise ValueError("this embedding has no probe: the stage draws none")
    return embedding.scale * embedding.image @ embedding.probe.T
