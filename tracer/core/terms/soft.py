"""Learning a teacher's soft labels: over the classes of a head, and over the pairs of a batch."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy, softmax

from tracer.core.batch import Scene
from tracer.core.objective import Term
from tracer.core.terms.distill import divergence


def soft_classes(temperature: float = 1.0) -> Term:
    """KD: the head keeps the teacher's opinion of every class, not only of the right one.

    L = τ² mean_i KL( softmax(z_i^T / τ) ‖ softmax(z_i^S / τ) ), z the heads' scores; τ² keeps the
    gradient's size. Reference: Hinton et al. (arXiv 1503.02531).
    """
    if temperature <= 0:
        raise ValueError(f"a temperature is positive, not {temperature}")

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        if student.scores is None or teacher.scores is None:
            raise ValueError("soft_classes needs the scores of student and teacher")
        taught = teacher.scores.detach() / temperature
        return temperature**2 * divergence(taught, student.scores / temperature)

    return Term("soft_classes", formula, needs=frozenset({"scores", "teacher"}))


def soft_pairs() -> Term:
    """CaRot's self-distillation: the teacher's similarities are the student's soft labels, both ways.

    L = mean_i [ H(p_i^T, p_i^S) + H(q_i^T, q_i^S) ], p = softmax rows of s U Vᵀ, q of its transpose, each
    model at its own temperature: cross-entropies, summed and not halved. It differs from `relational` by the
    teacher's entropy, which is a constant. Reference: CaRot (arXiv 2311.01723).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        taught, learned = teacher.logits.detach(), student.logits
        return soft_entropy(taught, learned) + soft_entropy(taught.T, learned.T)

    return Term("soft_pairs", formula, needs=frozenset({"text", "teacher"}))


def soft_entropy(taught: Float[Tensor, "n k"], learned: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """mean_i H( softmax(taught_i), softmax(learned_i) )."""
    return cross_entropy(learned, softmax(taught, dim=1))
