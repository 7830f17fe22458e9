"""Choices of trainable parameters: each sets `requires_grad` and whether BatchNorm statistics are updated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tracer.core.errors import unknown
from tracer.models.student import Student

Tune = Callable[[Student], None]
Towers = Literal["both", "image"]


@dataclass(frozen=True)
class All:
    """Both towers, the temperature and the head, if any."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(True)
        student.frozen_statistics = False


@dataclass(frozen=True)
class ImageTower:
    """The image tower and, by default, the head, if any; the text tower is frozen.

    `scale` also trains the temperature and the logit bias, if any; `norms=False` freezes the BatchNorm statistics.
    """

    scale: bool = False
    head: bool = True
    norms: bool = True

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        student.image_tower.requires_grad_(True)
        student.clip.logit_scale.requires_grad_(self.scale)
        if getattr(student.clip, "logit_bias", None) is not None:
            student.clip.logit_bias.requires_grad_(self.scale)
        if student.head is not None:
            student.head.requires_grad_(self.head)
        student.frozen_statistics = not self.norms


@dataclass(frozen=True)
class HeadOnly:
    """The classification head only: linear probing."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        if student.head is None:
            raise ValueError("there is no head to train")
        student.head.requires_grad_(True)
        student.frozen_statistics = True


def towers(which: Towers) -> Tune:
    """The choice by name: "both" towers and the temperature, or the "image" tower only."""
    choices: dict[str, Tune] = {"both": All(), "image": ImageTower()}
    if which not in choices:
        raise unknown("choice of towers", which, choices)
    return choices[which]
