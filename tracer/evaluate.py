"""Predict once, measure often: a model and a data set give logits, and every number is a function of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tracer.classifier import zero_shot
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.model import Student
from tracer.parallel import World


class Predictions(NamedTuple):
    """Logits in fp32 and what should have come out, in the data's own order."""

    logits: Float[Tensor, "n k"]
    label: Int[Tensor, " n"]
    ids: Sequence[str]

    @property
    def accuracy(self) -> float:
        return float((self.logits.argmax(dim=1) == self.label).double().mean())


@torch.no_grad()
def predict(
    student: Student, examples: Examples, templates: Sequence[str], world: World, *, head: bool = False
) -> Predictions:
    """Class logits of every image: by the trained head if asked, else by the class names through the text tower."""
    if head and student.head is not None:
        score: Callable[[Tensor], Tensor] = student.head
    else:
        rows = zero_shot(student, examples.classes, templates)

        def score(image: Tensor) -> Tensor:
            return student.scale.float() * image.float() @ rows.T

    logits = [score(image).float().cpu() for image in embed_images(student, examples, world)]
    return Predictions(torch.cat(logits), torch.from_numpy(examples.labels), examples.ids)


@torch.no_grad()
def embed_images(
    student: Student, examples: Examples, world: World, batch: int = 256
) -> Iterator[Float[Tensor, "n d"]]:
    """Image embeddings in order, a batch at a time, in eval mode."""
    transform = Transform(student.preprocess)
    training = student.training
    student.eval()
    try:
        for start in range(0, len(examples), batch):
            indices = range(start, min(start + batch, len(examples)))
            with world.autocast():
                yield student.embed_image(transform.batch(examples.images, indices).to(world.device))
    finally:
        student.train(training)


@torch.no_grad()
def pair_recall(student: Student, examples: Examples, world: World) -> float:
    """Share of images whose own first caption is the nearest of all captions."""
    captions = [texts[0] for texts in examples.captions]
    distinct = sorted(set(captions))
    text = zero_shot(student, distinct, ("{}",))
    own = torch.tensor([distinct.index(caption) for caption in captions])
    nearest = [
        (image.float() @ text.T).argmax(dim=1).cpu() for image in embed_images(student, examples, world)
    ]
    return float((torch.cat(nearest) == own).double().mean())


def held_out_accuracy(
    student: Student, examples: Examples, templates: Sequence[str], world: World, *, head: bool = False
) -> float:
    """The one number shown while training: class accuracy, or caption recall where there are no classes."""
    if examples.labelled:
        return predict(student, examples, templates, world, head=head).accuracy
    return pair_recall(student, examples, world)
