"""How a classification head starts: as the zero-shot classifier, at random, or solved for."""

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


class Start(Protocol):
    """Makes a head for a student out of the data it will be trained on."""

    def __call__(
        self, student: Student, examples: Examples, templates: Sequence[str], world: World, seed: int
    ) -> Head: ...


@dataclass(frozen=True)
class ZeroShot:
    """One row a class, from its prompts through the text tower.

    The temperature is a factor of the rows, which then learn with it, or stands beside them, fixed.
    """

    folded: bool = True
    bias: bool = True
    prompts: tuple[str, ...] = ()  # instead of the run's

    def __call__(
        self, student: Student, examples: Examples, templates: Sequence[str], world: World, seed: int
    ) -> Head:
        del world, seed
        rows = zero_shot(student, examples.classes, self.prompts or templates)
        scale = student.scale.detach()
        return Head(rows * scale, self.bias) if self.folded else Head(rows, self.bias, scale=float(scale))


@dataclass(frozen=True)
class Random:
    """Gaussian rows of unit length on average, over features as they are or, with `unit`, of unit length."""

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
    """Logistic regression on the features of the training images, without augmentation: no seed, no rate."""

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
