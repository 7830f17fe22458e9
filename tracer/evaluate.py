"""Predict once, measure often: a model and a data set give logits, and every number is a function of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from tracer.atomic import write_bytes
from tracer.classifier import zero_shot
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.errors import UserError
from tracer.metrics import accuracy
from tracer.model import Student
from tracer.parallel import World
from tracer.suites import Opened


class Predictions(NamedTuple):
    """Logits in fp32 and what should have come out, in the data's own order."""

    logits: Float[Tensor, "n k"]
    label: Int[Tensor, " n"]
    ids: Sequence[str]

    @property
    def accuracy(self) -> float:
        return accuracy(self.logits, self.label)

    def write(self, path: Path) -> None:
        """Keep them, so that every metric can be had again without the model."""
        tensors = {"logits": self.logits.contiguous(), "label": self.label.contiguous()}
        write_bytes(path, save(tensors, metadata={"ids": json.dumps(list(self.ids))}))

    @classmethod
    def read(cls, path: Path) -> Predictions:
        with safe_open(path, "pt") as file:
            ids = json.loads((file.metadata() or {}).get("ids", "[]"))
            return cls(file.get_tensor("logits"), file.get_tensor("label"), ids)


class Scorer:
    """A student ready to score class lists: by its trained head where it knows the classes, else by their names.

    Each pair of class names and templates goes through the text tower once, however many data sets share it.
    """

    def __init__(self, student: Student, world: World, trained_on: Sequence[str] = ()) -> None:
        self.student, self.world, self.trained_on = student, world, tuple(trained_on)
        self._rows: dict[tuple[tuple[str, ...], tuple[str, ...]], Tensor] = {}

    def by_head(self, classes: Sequence[str]) -> bool:
        return self.student.head is not None and self.trained_on == tuple(classes)

    @torch.no_grad()
    def predict(
        self, examples: Examples, templates: Sequence[str], classes: Sequence[str] = ()
    ) -> Predictions:
        """Logits of every image over `classes`, by default the data's own."""
        names = tuple(classes or examples.classes)
        score = self._score(names, tuple(templates))
        images = embed_images(self.student, examples, self.world, unit=not self.by_head(names))
        logits = torch.cat([score(image) for image in images])
        if not torch.isfinite(logits).all():  # the largest of them would be no answer
            raise UserError(
                f"{self.student.name} gives {examples.name} scores that are not finite: it is broken"
            )
        return Predictions(logits, torch.from_numpy(examples.labels), examples.ids)

    def predict_shift(self, opened: Opened) -> Predictions:
        """Logits over a test set's own classes, by the rule that the set declares."""
        shift, examples, _ = opened
        scored = self.predict(examples, shift.templates, shift.classes)
        return scored._replace(logits=shift.project(scored.logits))

    def _score(self, classes: tuple[str, ...], templates: tuple[str, ...]) -> Callable[[Tensor], Tensor]:
        student, world = self.student, self.world
        if self.by_head(classes):
            return lambda image: world.forward(Student.classify, student, image).float().cpu()
        if (classes, templates) not in self._rows:
            self._rows[classes, templates] = world.forward(_scaled_rows, student, classes, templates)
        rows = self._rows[classes, templates]
        return lambda image: (image.float() @ rows.T).cpu()


def _scaled_rows(student: Student, classes: Sequence[str], templates: Sequence[str]) -> Float[Tensor, "c d"]:
    """A classifier out of class names, at the student's temperature."""
    return (zero_shot(student, classes, templates) * student.scale).float()


@torch.no_grad()
def embed_images(
    student: Student, examples: Examples, world: World, batch: int = 64, *, unit: bool = True
) -> Iterator[Float[Tensor, "n d"]]:
    """Image embeddings in order, a batch at a time, in eval mode; as the tower makes them if not `unit`.

    In fp32 whatever the training's precision is: a score should not depend on the machine that took it.
    """
    transform = Transform(student.preprocess)
    embed = Student.embed_image if unit else Student.encode_image
    training = student.training
    student.eval()
    try:
        for start in range(0, len(examples), batch * world.size):
            indices = range(start, min(start + batch * world.size, len(examples)))
            images = transform.batch(examples.images, world.share(indices)).to(world.device)
            yield world.collect(world.forward(embed, student, images), len(indices))
    finally:
        student.train(training)
