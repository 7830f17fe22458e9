"""Logits of a model on a data set. All metrics are computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear, normalize

from tracer.core.errors import NonFinite
from tracer.data.examples import Examples
from tracer.data.features import BATCH, embed_images
from tracer.data.loader import decoders
from tracer.measure.answers import Predictions
from tracer.models.acceleration import without_other_tokens
from tracer.models.student import Student
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World


class ImageFeatures(NamedTuple):
    """The output of a student's image tower, not normalised, in the order of the data set."""

    examples: Examples
    features: Float[Tensor, "n d"]

    @property
    def unit(self) -> Float[Tensor, "n d"]:
        """Unit-length image embeddings."""
        return normalize(self.features, dim=-1)

    def take(self, indices: np.ndarray) -> ImageFeatures:
        """The features of these images, in this order."""
        rows = torch.from_numpy(indices).to(self.features.device)
        return ImageFeatures(self.examples.take(indices), self.features[rows])


# Weights and bias of zero-shot classifiers, by class names and templates.
Classifiers = dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Tensor, Tensor | None]]


class Scorer:
    """Scores images over lists of classes: with the student's head for the classes it was trained on, else zero-shot.

    Image features (`embed`) can be scored over several lists of classes. Zero-shot classifiers are cached in
    `classifiers`, which may be those of a scorer of a student with the same text tower and scale. Images are decoded by
    `workers` processes; None chooses as many as training does.
    """

    def __init__(
        self,
        student: Student,
        world: World,
        trained_on: Sequence[str] = (),
        workers: int | None = None,
        *,
        classifiers: Classifiers | None = None,
    ) -> None:
        self.student, self.world, self.trained_on = student, world, tuple(trained_on)
        self.workers = workers
        self.classifiers: Classifiers = {} if classifiers is None else classifiers

    def by_head(self, classes: Sequence[str]) -> bool:
        """Whether these classes are scored with the trained head: they are its own, in any order."""
        return self.student.head is not None and sorted(self.trained_on) == sorted(classes)

    def by_sigmoid(self, classes: Sequence[str]) -> bool:
        """Whether the sigmoid of a logit over these classes is a probability of the model, each class by itself."""
        return self.student.bias is not None and not self.by_head(classes)

    def embed(self, examples: Examples) -> ImageFeatures:
        """Features of all images, in one pass."""
        workers = decoders(examples.images, self.world.local_size) if self.workers is None else self.workers
        with without_other_tokens(self.student):
            batches = [*embed_images(self.student, examples, self.world, unit=False, workers=workers)]
        return ImageFeatures(examples, torch.cat(batches))

    @torch.no_grad()
    def score(
        self, features: ImageFeatures, templates: Sequence[str], classes: Sequence[str] = ()
    ) -> Predictions:
        """Logits of every image over `classes`, by default those of the data set."""
        examples = features.examples
        classify = self.classifier(tuple(classes or examples.classes), tuple(templates))
        logits = torch.cat([classify(part) for part in features.features.split(BATCH * self.world.size)])
        if not torch.isfinite(logits).all():
            raise NonFinite(
                f"{self.student.name} gives {examples.name} scores that are not finite: it is broken"
            )
        return Predictions(logits, torch.from_numpy(examples.labels), examples.ids)

    def predict(
        self, examples: Examples, templates: Sequence[str], classes: Sequence[str] = ()
    ) -> Predictions:
        """Embed and score a data set."""
        return self.score(self.embed(examples), templates, classes)

    def classifier(self, classes: tuple[str, ...], templates: tuple[str, ...]) -> Callable[[Tensor], Tensor]:
        """A function from image features to logits on the CPU."""
        student, world = self.student, self.world
        if self.by_head(classes):
            columns = [self.trained_on.index(name) for name in classes]
            return lambda image: world.forward(Student.classify, student, image).float().cpu()[:, columns]
        if (classes, templates) not in self.classifiers:
            self.classifiers[classes, templates] = world.forward(
                _zero_shot_classifier, student, classes, templates, not world.sharded
            )
        weights, bias = self.classifiers[classes, templates]
        return lambda image: linear(normalize(image, dim=-1).float(), weights, bias).cpu()


def _zero_shot_classifier(
    student: Student, classes: Sequence[str], templates: Sequence[str], share_words: bool
) -> tuple[Float[Tensor, "c d"], Float[Tensor, " c"] | None]:
    """The zero-shot classifier of these classes, times the student's logit scale, and its logit bias, if any."""
    weights = (zero_shot(student, classes, templates, share_words=share_words) * student.scale).float()
    return weights, None if student.bias is None else student.bias.float().expand(len(weights))
