"""Class logits as a differentiable function of all of a student's weights."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call

from tracer.core.batch import Batch, Embedding
from tracer.core.weights import Weights
from tracer.models.student import Student


def class_logits(student: Student, batch: Batch, weights: Weights | None = None) -> Float[Tensor, "n c"]:
    """Logits of the head if there is one, else of the prompts in `batch.text`, one per class.

    `weights` replace the student's own without being loaded into it.
    """
    needs = frozenset({"text" if student.head is None else "scores"})
    embedding: Embedding = functional_call(student, weights or {}, (batch, needs))
    return embedding.logits if embedding.scores is None else embedding.scores
