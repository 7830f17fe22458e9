"""Predict once, measure often: a model and a data set give logits, and every number is a function of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.core.metrics import accuracy
from tracer.data.examples import Examples
from tracer.data.features import BATCH, embed_images
from tracer.data.loader import decoders
from tracer.evaluation.suites import Opened
from tracer.models.student import Student
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World
from tracer.storage.atomic import write_bytes


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


class Seen(NamedTuple):
    """A data set as a student sees it: features as the image tower makes them, in the data's own order."""

    examples: Examples
    features: Float[Tensor, "n d"]

    @property
    def unit(self) -> Float[Tensor, "n d"]:
        """Unit-length image embeddings."""
        return normalize(self.features, dim=-1)

    def take(self, indices: np.ndarray) -> Seen:
        """Some of the images, in this order."""
        rows = torch.from_numpy(indices).to(self.features.device)
        return Seen(self.examples.take(indices), self.features[rows])


class Scorer:
    """A student ready to score class lists: by its trained head where it knows the classes, else by their names.

    Each image goes through its tower once (`embed`), however many class lists score it; each pair of class names and
    templates goes through the text tower once, however many data sets share it. Images are decoded by `workers`
    processes, as many as training would take if that is None.
    """

    def __init__(
        self, student: Student, world: World, trained_on: Sequence[str] = (), workers: int | None = None
    ) -> None:
        self.student, self.world, self.trained_on = student, world, tuple(trained_on)
        self.workers = workers
        self._rows: dict[tuple[tuple[str, ...], tuple[str, ...]], Tensor] = {}

    def by_head(self, classes: Sequence[str]) -> bool:
        return self.student.head is not None and self.trained_on == tuple(classes)

    def embed(self, examples: Examples) -> Seen:
        """The one pass over the images."""
        workers = decoders(examples.images, self.world.neighbours) if self.workers is None else self.workers
        batches = embed_images(self.student, examples, self.world, unit=False, workers=workers)
        return Seen(examples, torch.cat([*batches]))

    @torch.no_grad()
    def score(self, seen: Seen, templates: Sequence[str], classes: Sequence[str] = ()) -> Predictions:
        """Logits of every image over `classes`, by default the data's own."""
        examples = seen.examples
        score = self._score(tuple(classes or examples.classes), tuple(templates))
        logits = torch.cat([score(part) for part in seen.features.split(BATCH * self.world.size)])
        if not torch.isfinite(logits).all():  # the largest of them would be no answer
            raise UserError(
                f"{self.student.name} gives {examples.name} scores that are not finite: it is broken"
            )
        return Predictions(logits, torch.from_numpy(examples.labels), examples.ids)

    def score_shift(self, seen: Seen, opened: Opened) -> Predictions:
        """Logits over a test set's own classes, by the rule that the set declares."""
        scored = self.score(seen, opened.shift.templates, opened.shift.classes)
        return scored._replace(logits=opened.shift.project(scored.logits))

    def predict(
        self, examples: Examples, templates: Sequence[str], classes: Sequence[str] = ()
    ) -> Predictions:
        """Embed and score, for images that are scored once."""
        return self.score(self.embed(examples), templates, classes)

    def predict_shift(self, opened: Opened) -> Predictions:
        """Embed and score a test set."""
        return self.score_shift(self.embed(opened.examples), opened)

    def _score(self, classes: tuple[str, ...], templates: tuple[str, ...]) -> Callable[[Tensor], Tensor]:
        student, world = self.student, self.world
        if self.by_head(classes):
            return lambda image: world.forward(Student.classify, student, image).float().cpu()
        if (classes, templates) not in self._rows:
            self._rows[classes, templates] = world.forward(_scaled_rows, student, classes, templates)
        rows = self._rows[classes, templates]
        return lambda image: (normalize(image, dim=-1).float() @ rows.T).cpu()


def _scaled_rows(student: Student, classes: Sequence[str], templates: Sequence[str]) -> Float[Tensor, "c d"]:
    """A classifier out of class names, at the student's temperature."""
    return (zero_shot(student, classes, templates) * student.scale).float()
