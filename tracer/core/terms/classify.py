"""Cross-entropy over the classes of a head, plain and with a margin."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from tracer.core.batch import Scene, required
from tracer.core.objective import Term

_SCORES = frozenset({"scores"})


def classify(smoothing: float = 0.0) -> Term:
    """Cross-entropy of the classification head: L = mean_i −log softmax(scores_i)[label_i]."""

    def formula(scene: Scene) -> Tensor:
        scores = required(scene.student.scores, "classify needs the head's scores")
        return cross_entropy(
            scores, required(scene.label, "classify needs labels"), label_smoothing=smoothing
        )

    return Term("classify", formula, needs=_SCORES)


def margin(strength: float = 0.3) -> Term:
    """CLIPood's margin metric softmax: cross-entropy with a larger margin to classes farther from the label.

    L = mean_i CE(z_i, y_i), z_ic = s ( ⟨f_i, t_c⟩ − λ ⟨t_{y_i}, t_c⟩ ): up to a shift by sλ, which the
    softmax ignores, a margin of λ (1 − ⟨t_y, t_c⟩), 0 for the label. Reference: CLIPood (arXiv 2302.00864).
    """

    def formula(scene: Scene) -> Tensor:
        classes = required(scene.student.classes, "margin needs the head's class embeddings")
        label = required(scene.label, "margin needs labels")
        label_similarity = (classes @ classes.T)[label]
        logits = scene.student.scale * (scene.student.image @ classes.T - strength * label_similarity)
        return cross_entropy(logits, label)

    return Term("margin", formula, needs=_SCORES)
