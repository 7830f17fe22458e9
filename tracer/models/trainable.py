"""Choices of trainable parameters: each sets `requires_grad` and whether running statistics may be updated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from tracer.core.errors import UserError, unknown
from tracer.models.student import Student

Tune = Callable[[Student], None]
Towers = str  # "both", "image", "norms", "biases", "last-K" or "image-last-K"


@dataclass(frozen=True)
class All:
    """Both towers, the temperature and the head, if any."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(True)
        student.frozen_statistics = False


@dataclass(frozen=True)
class ImageTower:
    """The image tower and, by default, the head, if any."""

    head: bool = True

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        student.image_tower.requires_grad_(True)
        if student.head is not None:
            student.head.requires_grad_(self.head)
        student.frozen_statistics = False


@dataclass(frozen=True)
class HeadOnly:
    """The classification head only: linear probing."""

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        if student.head is None:
            raise ValueError("there is no head to train")
        student.head.requires_grad_(True)
        student.frozen_statistics = True


@dataclass(frozen=True)
class Kind:
    """One kind of parameter in both towers, the temperature and the head: "norms" or "biases" (BitFit)."""

    kind: Literal["norms", "biases"]

    def __call__(self, student: Student) -> None:
        student.requires_grad_(False)
        for module in student.modules():
            for name, parameter in module.named_parameters(recurse=False):
                norm = "Norm" in type(module).__name__
                parameter.requires_grad_(norm if self.kind == "norms" else name.endswith("bias"))
        towers = {"image": student.image_tower.parameters(), "text": student.text_parameters}
        for tower, parameters in towers.items():
            if not any(p.requires_grad for p in parameters):
                raise UserError(f"--tune {self.kind}: the {tower} tower of {student.name} has no {self.kind}")
        for parameter in (*_temperature(student), *(student.head.parameters() if student.head else ())):
            parameter.requires_grad_(True)
        student.frozen_statistics = self.kind != "norms"


@dataclass(frozen=True)
class LastBlocks:
    """The last blocks of both towers and the layers after them, the temperature and the head.

    With `image_only`, those of the image tower and the head: text tower and temperature are frozen, as in ImageTower.
    """

    count: int
    image_only: bool = False

    def __call__(self, student: Student) -> None:
        (ImageTower() if self.image_only else All())(student)
        for tower in student.towers[: 1 if self.image_only else 2]:
            blocks = list(tower.blocks.values())
            if self.count > len(blocks):
                raise UserError(
                    f"--tune last-{self.count}: the {tower.kind} tower of {student.name} has {len(blocks)} blocks"
                )
            if tower.unplaced:
                raise UserError(
                    f"--tune last-{self.count}: the {tower.kind} tower of {student.name} has a part that is not known, "
                    f"{tower.unplaced[0]}, which may lie before its blocks or after them; use --tune both or norms"
                )
            for frozen in (*blocks[: len(blocks) - self.count], *tower.input_parameters):
                frozen.requires_grad_(False)
        student.frozen_statistics = True


def freeze_towers(student: Student) -> None:
    """Freeze both towers, their running statistics included; temperature and head stay as they are."""
    for name, parameter in student.clip.named_parameters():
        if not name.startswith("logit_"):
            parameter.requires_grad_(False)
    student.frozen_statistics = True


def _temperature(student: Student) -> list[nn.Parameter]:
    """The logit scale, and the logit bias in sigmoid models."""
    return [p for name, p in student.clip.named_parameters() if name.startswith("logit_")]


def towers(which: Towers) -> Tune:
    """The choice by name: "both" towers, the "image" tower, "norms", "biases", "last-K" or "image-last-K" blocks."""
    choices: dict[str, Tune] = {
        "both": All(),
        "image": ImageTower(),
        "norms": Kind("norms"),
        "biases": Kind("biases"),
    }
    if last := re.fullmatch(r"(image-)?last-([1-9]\d*)", which):
        return LastBlocks(int(last[2]), image_only=last[1] is not None)
    if which not in choices:
        raise unknown("choice of --tune", which, [*choices, "last-6", "image-last-6"])
    return choices[which]
