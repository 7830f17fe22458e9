"""What may move: each choice sets `requires_grad` on a student's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracer.model import Student

Tune = Callable[[Student], None]


@dataclass(frozen=True)
class All:
    """Both towers, their projections, the temperature and a head if there is one."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(True)


@dataclass(frozen=True)
class ImageTower:
    """The image tower and a head if there is one; text and, unless asked for, temperature stay."""

    scale: bool = False

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        student.image_tower.requires_grad_(True)
        student.clip.logit_scale.requires_grad_(self.scale)
        if student.head is not None:
            student.head.requires_grad_(True)


@dataclass(frozen=True)
class HeadOnly:
    """The classification head alone: linear probing."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        if student.head is None:
            raise ValueError("there is no head to tune")
        student.head.requires_grad_(True)
