"""The three records of a training step: a batch, its embeddings by a model, and the input of the loss terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from jaxtyping import Float, Int, Num
from torch import Tensor
from torch.utils._pytree import tree_map_only

T = TypeVar("T")

PAIRED = ("image", "text", "scores", "features", "tokens")  # fields of an Embedding with a row for each pair


class Batch(NamedTuple):
    """The input of a model.

    `text` holds each distinct caption once; `caption[i]` is the row of `text` that belongs to image i. Without
    `caption`, row i of `text` belongs to image i.
    """

    image: Num[Tensor, "n 3 h w"]  # uint8 pixels (normalised on the device) or floats, already normalised
    text: Int[Tensor, "u l"] | None = None
    label: Int[Tensor, " n"] | None = None
    caption: Int[Tensor, " n"] | None = None
    probe: Num[Tensor, "k m"] | None = None  # tokens or embeddings of further texts; equal in every process
    anchors: Batch | None = None  # a second stream of image-text pairs

    def every(self, k: int) -> Batch:
        """Every k-th pair, from the first, with the distinct captions of these pairs."""
        if k == 1:
            return self
        text, caption = self.text, self.caption
        if text is not None and caption is not None:
            rows, caption = caption[::k].unique(return_inverse=True)
            text = text[rows]
        elif text is not None:
            text = text[::k]
        label = None if self.label is None else self.label[::k]
        return self._replace(image=self.image[::k], text=text, label=label, caption=caption)


class Embedding(NamedTuple):
    """A model's output for a batch. Rows of `image` and `text` have unit length; row i of each is pair i."""

    image: Float[Tensor, "n d"]
    text: Float[Tensor, "n d"] | None = None
    scale: Float[Tensor, ""] | float = 1.0  # inverse temperature
    scores: Float[Tensor, "n c"] | None = None  # the classification head's output
    classes: Float[Tensor, "c d"] | None = None  # weights of the head, one row per class
    probe: Float[Tensor, "k d"] | None = None
    projections: tuple[Float[Tensor, "v d"], Float[Tensor, "t d"]] | None = None  # last layer of each tower
    features: tuple[Float[Tensor, "n _"], ...] | None = None  # pooled output of each image block
    tokens: tuple[Float[Tensor, "n _ _"], ...] | None = None  # all tokens at five depths of the image tower
    anchors: Embedding | None = None
    bias: Float[Tensor, ""] | None = None  # of the logits; only models trained with the sigmoid loss have one

    def with_rows(self, change: Callable[[Tensor], Tensor]) -> Embedding:
        """The embedding after `change` of every tensor that has a row for each pair."""
        fields = {name: tree_map_only(Tensor, change, getattr(self, name)) for name in PAIRED}
        return self._replace(**fields)

    def every(self, k: int) -> Embedding:
        """The rows of every k-th pair, from the first."""
        return self.with_rows(lambda rows: rows[::k])

    @property
    def logits(self) -> Float[Tensor, "n n"]:
        """Scaled similarity of every image to every text, plus the bias if the model has one."""
        text = required(self.text, "this embedding has no text: the objective did not ask for it")
        logits = self.scale * self.image @ text.T
        return logits if self.bias is None else logits + self.bias


class Share(NamedTuple):
    """The part of the pairs of the global batch whose losses this process adds up."""

    rank: int = 0
    parts: int = 1
    total: Callable[[Tensor], Tensor] = lambda own: own  # the sum over all processes, with gradient

    def rows(self, count: int) -> range:
        """The rows of this process among `count`, which every process has equally many of."""
        return range(self.rank * count // self.parts, (self.rank + 1) * count // self.parts)


class Scene(NamedTuple):
    """The input of a loss term. With several processes it is already the global batch."""

    student: Embedding
    teacher: Embedding | None = None
    label: Int[Tensor, " n"] | None = None
    progress: float = 0.0  # fraction of training done, in [0, 1]
    share: Share = Share()

    @property
    def shown_to_teacher(self) -> Scene:
        """The scene of the pairs that the teacher has embedded: all, or every k-th of each process."""
        k = 1 if self.teacher is None else len(self.student.image) // len(self.teacher.image)
        if k == 1:
            return self
        return self._replace(
            student=self.student.every(k), label=None if self.label is None else self.label[::k]
        )

    @property
    def taught(self) -> tuple[Embedding, Embedding]:
        """Student and teacher; raises ValueError without a teacher."""
        teacher = required(self.teacher, "this term compares with a teacher, and the scene has none")
        return self.student, teacher


def required(value: T | None, message: str) -> T:
    """A value that a loss term needs; raises ValueError with the message where the scene lacks it."""
    if value is None:
        raise ValueError(message)
    return value
