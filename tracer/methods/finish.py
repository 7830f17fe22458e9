"""Which weights a method returns at the end of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tracer.core.errors import UserError
from tracer.models.student import Weights


class Trained(NamedTuple):
    """The weights at the end of training."""

    pretrained: Weights
    student: Weights
    teacher: Weights | None = None


Finish = Callable[[Trained], Weights]


def keep_student(trained: Trained) -> Weights:
    """The student at its last step."""
    return trained.student


def keep_teacher(trained: Trained) -> Weights:
    """The teacher: the averaged weights (EMA, SWA, CLIPood)."""
    if trained.teacher is None:
        raise UserError("this method keeps the teacher, and it has none")
    return trained.teacher
