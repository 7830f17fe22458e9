"""The four ways TRACER's student listens to its teacher (paper, appendix "Distillation Loss Definitions").

U, V are image and text embeddings, s the inverse temperature; S is the student, T the teacher. Each term is
the paper's equation; the coefficients of a preset stand in the method's file. The teacher is a constant in all.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

from tracer.core.batch import Embedding, Scene
from tracer.core.objective import Term
from tracer.core.terms.contrastive import Targets, check_targets, positives, symmetric_infonce

_PAIRS = frozenset({"text", "teacher"})


def feature() -> Term:
    """FD: embeddings stay where the teacher has them.

    L = mean_i ( ‖u_i^T − u_i^S‖² + ‖v_i^T − v_i^S‖² ).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        image_gap = (student.image - teacher.image.detach()).square().sum(dim=1)
        text_gap = (_text(student) - _text(teacher).detach()).square().sum(dim=1)
        return (image_gap + text_gap).mean()

    return Term("feature", formula, needs=_PAIRS)


def relational() -> Term:
    """CRD: the student sees the same similarities in the batch as the teacher, each at its own temperature.

    L = mean_i [ KL(p_i^T ‖ p_i^S) + KL(q_i^T ‖ q_i^S) ], p = softmax rows of s U Vᵀ, q of its transpose.
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        taught, learned = teacher.logits.detach(), student.logits
        return divergence(taught, learned) + divergence(taught.T, learned.T)

    return Term("relational", formula, needs=_PAIRS)


def interactive(targets: Targets = "pair") -> Term:
    """ICL: the student's embeddings find their partners among the teacher's.

    L = ½ [ CE(s_S U_S V_Tᵀ, Y) + CE(s_S V_S U_Tᵀ, Y) ], Y = I or label-aware as in `contrastive`.
    """
    check_targets(targets)

    def formula(scene: Scene) -> Tensor:
        return symmetric_infonce(*mixed_logits(scene), positives(scene, targets))

    return Term("interactive", formula, needs=_PAIRS)


def cross() -> Term:
    """CrossKD: student-to-teacher similarities match the teacher's own.

    L = ½ mean_i [ KL(p_i^T ‖ softmax_i(s_S U_S V_Tᵀ)) + KL(q_i^T ‖ softmax_i(s_S V_S U_Tᵀ)) ].
    """

    def formula(scene: Scene) -> Tensor:
        _, teacher = scene.taught
        taught = teacher.logits.detach()
        image_logits, text_logits = mixed_logits(scene)
        return (divergence(taught, image_logits) + divergence(taught.T, text_logits)) / 2

    return Term("cross", formula, needs=_PAIRS)


def mixed_logits(scene: Scene) -> tuple[Float[Tensor, "n n"], Float[Tensor, "n n"]]:
    """Student images over teacher texts, student texts over teacher images, at the student's temperature."""
    student, teacher = scene.taught
    image_logits = student.scale * student.image @ _text(teacher).detach().T
    text_logits = student.scale * _text(student) @ teacher.image.detach().T
    return image_logits, text_logits


def divergence(taught: Float[Tensor, "n k"], learned: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """mean_i KL( softmax(taught_i) ‖ softmax(learned_i) )."""
    target, guess = log_softmax(taught, dim=1), log_softmax(learned, dim=1)
    return kl_div(guess, target, reduction="batchmean", log_target=True)


def _text(embedding: Embedding) -> Tensor:
    if embedding.text is None:
        raise ValueError("distillation over pairs needs text embeddings on both sides")
    return embedding.text
