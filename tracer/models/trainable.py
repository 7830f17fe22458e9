"""What may move: each choice sets `requires_grad` on a student's parameters, and whether statistics move."""

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
    """Both towers, their projections, the temperature and a head if there is one."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(True)
        student.frozen_statistics = False


@dataclass(frozen=True)
class ImageTower:
    """The image tower and, unless said otherwise, a head if there is one; text and temperature stay.

    With norms=False the statistics of BatchNorm stay as well.
    """

    scale: bool = False
    head: bool = True
    norms: bool = True

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        student.image_tower.requires_grad_(True)
        student.clip.logit_scale.requires_grad_(self.scale)
        if student.head is not None:
            student.head.requires_grad_(self.head)
        student.frozen_statistics = not self.norms


@dataclass(frozen=True)
class HeadOnly:
    """The classification head alone: linear probing."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        if student.head is None:
            raise ValueError("there is no head to tune")
        student.head.requires_grad_(True)
        student.frozen_statistics = True


def towers(which: Towers) -> Tune:
    """The choice by name: "both" towers and the temperature, or the "image" tower alone."""
    choices: dict[str, Tune] = {"both": All(), "image": ImageTower()}
    if which not in choices:
        raise unknown("choice of towers", which, choices)
    return choices[which]
