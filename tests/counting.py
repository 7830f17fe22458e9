"""How often a model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracer.models.student import Student


@contextmanager
def counted(student: Student) -> Iterator[list[int]]:
    """How many images each call of the image tower is given inside."""
    seen: list[int] = []
    hook = student.image_tower.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    try:
        yield seen
    finally:
        hook.remove()
