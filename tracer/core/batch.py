"""The three records that flow through training: a batch, what a model makes of it, what a loss may see."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int, Num
from torch import Tensor


class Batch(NamedTuple):
    """What the loader hands to a model.

    `text` holds each distinct caption once; `caption` says which row of it belongs to each image. Without
    `caption`, row i of `text` belongs to image i.
    """

    image: Num[Tensor, "n 3 h w"]  # uint8 pixels (normalised on the device) or floats, already normalised
    text: Int[Tensor, "u l"] | None = None
    label: Int[Tensor, " n"] | None = None
    caption: Int[Tensor, " n"] | None = None
    probe: Num[Tensor, "k m"] | None = None  # further texts, or their embeddings; the same in every process
    anchors: Batch | None = None  # a second stream of pairs beside the task's own


class Embedding(NamedTuple):
    """What a model makes of a batch. Image and text rows have unit length, in matching order."""

    image: Float[Tensor, "n d"]
    text: Float[Tensor, "n d"] | None = None
    scale: Float[Tensor, ""] | float = 1.0
    scores: Float[Tensor, "n c"] | None = None  # the classification head's output
    classes: Float[Tensor, "c d"] | None = None  # the head's rows, for losses that look at them
    probe: Float[Tensor, "k d"] | None = None
    projections: tuple[Float[Tensor, "v d"], Float[Tensor, "t d"]] | None = None  # last map of each tower
    features: tuple[Float[Tensor, "n _"], ...] | None = None  # pooled output of each block of the image tower
    anchors: Embedding | None = None

    @property
    def logits(self) -> Float[Tensor, "n n"]:
        """Scaled similarity of every image to every text."""
        if self.text is None:
            raise ValueError("this embedding has no text: the objective did not ask for it")
        return self.scale * self.image @ self.text.T


class Scene(NamedTuple):
    """All that a term may look at; under several processes it is already the global batch."""

    student: Embedding
    teacher: Embedding | None = None
    label: Int[Tensor, " n"] | None = None
    progress: float = 0.0  # share of training done, in [0, 1]

    @property
    def taught(self) -> tuple[Embedding, Embedding]:
        """Student and teacher, for terms that cannot do without the teacher."""
        if self.teacher is None:
            raise ValueError("this term compares with a teacher, and the scene has none")
        return self.student, self.teacher
