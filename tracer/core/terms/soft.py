"""Distillation with the teacher's soft labels, over the classes of a head or the pairs of a batch."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy, softmax

from tracer.core.batch import Scene, required
from tracer.core.objective import Term
from tracer.core.terms.distill import both_directions, divergence
from tracer.core.terms.sigmoid import bernoulli_entropy


def soft_classes(temperature: float = 1.0) -> Term:
    """KD: KL between the class probabilities of teacher and student.

    L = τ² mean_i KL( softmax(z_i^T / τ) ‖ softmax(z_i^S / τ) ), z the heads' scores; τ² keeps the
    scale of the gradient. Reference: Hinton et al. (arXiv 1503.02531).
    """
    if temperature <= 0:
        raise ValueError(f"soft_classes needs a positive temperature, not {temperature}")

    def formula(scene: Scene) -> Tensor:
        message = "soft_classes needs the scores of student and teacher"
        student, teacher = (required(each.scores, message) for each in scene.taught)
        return temperature**2 * divergence(teacher.detach() / temperature, student / temperature)

    return Term("soft_classes", formula, needs=frozenset({"scores", "teacher"}))


def soft_pairs() -> Term:
    """CaRot's self-distillation: the teacher's similarities are soft labels for the student, in both directions.

    L = mean_i [ H(p_i^T, p_i^S) + H(q_i^T, q_i^S) ], p = softmax rows of s U Vᵀ, q of its transpose, each
    model at its own temperature. The two cross-entropies are summed, not averaged. It differs from `relational`
    by the teacher's entropy, a constant. Reference: CaRot (arXiv 2311.01723). With a logit bias:
    L = (2/n) Σ_ij H(σ(l_ij^T), σ(l_ij^S)), l = s U Vᵀ + b.
    """

    def formula(scene: Scene) -> Tensor:
        return both_directions(scene, soft_entropy, bernoulli_entropy)

    return Term("soft_pairs", formula, needs=frozenset({"text", "teacher"}))


def soft_entropy(target: Float[Tensor, "n k"], logits: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """mean_i H( softmax(target_i), softmax(logits_i) )."""
    return cross_entropy(logits, softmax(target, dim=1))
