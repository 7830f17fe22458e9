"""Initial classification heads: the zero-shot classifier, random weights, or logistic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from tracer.data.examples import Examples
from tracer.data.features import embed_images
from tracer.models.logistic import logistic
from tracer.models.student import Head, Student
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World


class InitialHead(Protocol):
    """Creates the initial head of a student from its training data."""

    def __call__(
        self, student: Student, examples: Examples, templates: Sequence[str], world: World, seed: int
    ) -> Head: ...


@dataclass(frozen=True)
class ZeroShot:
    """The zero-shot classifier: one row per class, the text embedding of its prompts.

    `folded` multiplies the rows by the scale, so that it is learned with them; else the scale is a constant.
    """

    folded: bool = True
    bias: bool = True
    prompts: tuple[str, ...] = ()  # instead of the run's templates

    def __call__(
        self, student: Student, examples: Examples, templates: Sequence[str], world: World, seed: int
    ) -> Head:
        del world, seed
        rows = zero_shot(student, examples.classes, self.prompts or templates)
        scale = student.scale.detach()
        return Head(rows * scale, self.bias) if self.folded else Head(rows, self.bias, scale=float(scale))


@dataclass(frozen=True)
class Random:
    """Gaussian rows of unit expected length; `unit` normalises the features."""

    unit: bool = False

    def __call__(
        self, student: Student, examples: Examples, templates: Sequence[str], world: World, seed: int
    ) -> Head:
        del templates, world
        width = student.config["embed_dim"]
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(len(examples.classes), width, generator=generator) / math.sqrt(width)
        return Head(rows, scale=1.0 if self.unit else None)


@dataclass(frozen=True)
class Solved:
    """Logistic regression on the features of the training images, without augmentation."""

    l2: float = 1e-3
    unit: bool = False

    def __call__(
        self, student: Student, examples: Examples, templates: Sequence[str], world: World, seed: int
    ) -> Head:
        del templates, seed
        features = torch.cat([*embed_images(student, examples, world, unit=self.unit)])
        label = torch.from_numpy(examples.labels)
        weight, bias = logistic(features, label, len(examples.classes), self.l2)
        head = Head(weight.to(features.dtype), scale=1.0 if self.unit else None)
        assert head.bias is not None
        head.bias.data.copy_(bias)
        return head
