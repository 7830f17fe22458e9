"""Distillation: TRACER's four losses (paper, appendix "Distillation Loss Definitions"), and soft labels.

U, V are image and text embeddings, s the inverse temperature; S is the student, T the teacher. Each term is
the paper's equation; the coefficients are in tracer/methods. No gradient flows to the teacher.

For models with a logit bias the softmax over a row becomes an independent probability σ(l_ij) of each pair, and the KL
of a row the sum of the KLs of its pairs, each model with its own scale and bias. FD does not change. The two directions
of CRD are then the same sum.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax

from tracer.core.batch import Embedding, Scene, required
from tracer.core.objective import Term
from tracer.core.terms.contrastive import Targets, matches, positives, symmetric_infonce
from tracer.core.terms.sigmoid import (
    Loss,
    Rows,
    bernoulli_divergence,
    bernoulli_entropy,
    over_pairs,
    pair_logits,
    sigmoid_loss,
)
from tracer.core.validation import require

_PAIRS = frozenset({"text", "teacher"})


def feature() -> Term:
    """FD: squared distance between the embeddings of student and teacher.

    L = mean_i ( ‖u_i^T − u_i^S‖² + ‖v_i^T − v_i^S‖² ).
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        image_gap = (student.image - teacher.image.detach()).square().sum(dim=1)
        text_gap = (_text(student) - _text(teacher).detach()).square().sum(dim=1)
        return (image_gap + text_gap).mean()

    return Term("feature", formula, needs=_PAIRS)


def relational() -> Term:
    """CRD: KL between the similarities of teacher and student in the batch, each at its own temperature.

    L = mean_i [ KL(p_i^T ‖ p_i^S) + KL(q_i^T ‖ q_i^S) ], p = softmax rows of s U Vᵀ, q of its transpose.
    With a logit bias: L = (2/n) Σ_ij KL(σ(l_ij^T) ‖ σ(l_ij^S)), l = s U Vᵀ + b.
    """

    def formula(scene: Scene) -> Tensor:
        return both_directions(scene, divergence, bernoulli_divergence)

    return Term("relational", formula, needs=_PAIRS)


def interactive(targets: Targets = "pair") -> Term:
    """ICL: InfoNCE between the student's embeddings and the teacher's.

    L = ½ [ CE(s_S U_S V_Tᵀ, Y) + CE(s_S V_S U_Tᵀ, Y) ], Y = I or label-aware as in `contrastive`.
    With a logit bias: the sigmoid loss of both matrices, s_S U_S V_Tᵀ + b_S and s_S V_S U_Tᵀ + b_S, averaged.
    """
    require("targets", targets, Targets)

    def formula(scene: Scene) -> Tensor:
        if scene.student.bias is not None:
            images, texts = _mixed_pairs(scene)
            positive = matches(scene, targets)
            of_images = over_pairs(scene, sigmoid_loss, images, positive)
            return (of_images + over_pairs(scene, sigmoid_loss, texts, positive)) / 2
        return symmetric_infonce(*mixed_logits(scene), positives(scene, targets))

    return Term("interactive", formula, needs=_PAIRS)


def cross() -> Term:
    """CrossKD: KL between the teacher's similarities and those of the student's embeddings to the teacher's.

    L = ½ mean_i [ KL(p_i^T ‖ softmax_i(s_S U_S V_Tᵀ)) + KL(q_i^T ‖ softmax_i(s_S V_S U_Tᵀ)) ].
    With a logit bias: L = (1/2n) Σ_ij [ KL(σ(l_ij^T) ‖ σ(m_ij)) + KL(σ(l_ji^T) ‖ σ(m'_ij)) ], with
    m = s_S U_S V_Tᵀ + b_S and m' = s_S V_S U_Tᵀ + b_S.
    """

    def formula(scene: Scene) -> Tensor:
        student, teacher = scene.taught
        if student.bias is not None:
            rows = pair_logits(teacher, teacher.image, teacher.text)
            columns = pair_logits(teacher, teacher.text, teacher.image)
            images, texts = _mixed_pairs(scene)
            of_images = over_pairs(scene, bernoulli_divergence, rows, images)
            return (of_images + over_pairs(scene, bernoulli_divergence, columns, texts)) / 2
        target = teacher.logits.detach()
        image_logits, text_logits = mixed_logits(scene)
        return (divergence(target, image_logits) + divergence(target.T, text_logits)) / 2

    return Term("cross", formula, needs=_PAIRS)


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


def both_directions(scene: Scene, by_softmax: Loss, by_sigmoid: Loss) -> Float[Tensor, ""]:
    """A distance of the student's similarities from the teacher's: of images to texts plus of texts to images.

    With a logit bias both are the same sum over pairs.
    """
    student, teacher = scene.taught
    if student.bias is not None:
        target = pair_logits(teacher, teacher.image, teacher.text)
        logits = pair_logits(student, student.image, student.text)
        return 2 * over_pairs(scene, by_sigmoid, target, logits)
    target, logits = teacher.logits.detach(), student.logits
    return by_softmax(target, logits) + by_softmax(target.T, logits.T)


def mixed_logits(scene: Scene) -> tuple[Float[Tensor, "n n"], Float[Tensor, "n n"]]:
    """Student images over teacher texts, student texts over teacher images, at the student's temperature."""
    student, teacher = scene.taught
    image_logits = student.scale * student.image @ _text(teacher).detach().T
    text_logits = student.scale * _text(student) @ teacher.image.detach().T
    return image_logits, text_logits


def _mixed_pairs(scene: Scene) -> tuple[Rows, Rows]:
    """The logits of `mixed_logits` with the student's bias, row by row."""
    student, teacher = scene.taught
    return (
        pair_logits(student, student.image, _text(teacher).detach()),
        pair_logits(student, _text(student), teacher.image.detach()),
    )


def divergence(target: Float[Tensor, "n k"], logits: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """mean_i KL( softmax(target_i) ‖ softmax(logits_i) )."""
    return kl_div(
        log_softmax(logits, dim=1), log_softmax(target, dim=1), reduction="batchmean", log_target=True
    )


def soft_entropy(target: Float[Tensor, "n k"], logits: Float[Tensor, "n k"]) -> Float[Tensor, ""]:
    """mean_i H( softmax(target_i), softmax(logits_i) )."""
    return cross_entropy(logits, softmax(target, dim=1))


def _text(embedding: Embedding) -> Tensor:
    return required(embedding.text, "distillation needs the text embeddings of student and teacher")
