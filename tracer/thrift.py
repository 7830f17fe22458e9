"""What a stage may save: memory, by computing again what need not be kept; time, by compiling the towers."""

from __future__ import annotations

from typing import Any

from torch import nn

from tracer.chunk import refuse_batch_statistics
from tracer.errors import UserError
from tracer.model import Student
from tracer.text import text_tower


def save_memory(student: Student, *, chunk: int | None = None, checkpointing: bool = False) -> None:
    """Make a student ready for chunks and checkpoints, or say why it cannot be; gradients stay the same."""
    if chunk is not None:
        refuse_batch_statistics(student)
    if checkpointing:
        recompute_blocks(student)


def recompute_blocks(student: Student) -> None:
    """Keep only what enters each block and compute the inside again on the way back (arXiv 1604.06174)."""
    student.clip.set_grad_checkpointing(True)
    if not any(getattr(module, "grad_checkpointing", False) for module in student.image_tower.modules()):
        student.clip.set_grad_checkpointing(False)
        raise UserError(f"--checkpointing: open_clip cannot recompute the image tower of {student.name}")


def compile_towers(*students: nn.Module, backend: str = "inductor") -> None:
    """Have both towers compiled at their first call, in place: names and weights stay what they are."""
    for student in students:
        clip: Any = student.get_submodule("clip")
        text: Any = text_tower(clip)
        clip.visual.compile(backend=backend)
        getattr(text, "transformer", text).compile(backend=backend)
