"""Cross-entropy on the classification head."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from tracer.core.batch import Scene
from tracer.core.objective import Term


def classify(smoothing: float = 0.0) -> Term:
    """Cross-entropy of the classification head: L = mean_i −log softmax(scores_i)[label_i]."""

    def formula(scene: Scene) -> Tensor:
        if scene.student.scores is None or scene.label is None:
            raise ValueError("classify needs the head's scores and the labels")
        return cross_entropy(scene.student.scores, scene.label, label_smoothing=smoothing)

    return Term("classify", formula, needs=frozenset({"scores"}))
