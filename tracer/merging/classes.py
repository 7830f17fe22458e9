"""A student's opinion of the classes as a function that can be differentiated in all of its weights."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call

from tracer.core.batch import Batch, Embedding
from tracer.core.weights import Weights
from tracer.models.student import Student


def class_logits(student: Student, batch: Batch, weights: Weights | None = None) -> Float[Tensor, "n c"]:
    """By the head if there is one, else by the prompts in `batch.text`, one a class, through the text tower.

    With `weights`, as the student would answer if it had those.
    """
    needs = frozenset({"text" if student.head is None else "scores"})
    seen: Embedding = functional_call(student, weights or {}, (batch, needs))
    return seen.logits if seen.scores is None else seen.scores
