"""Where the time of a run goes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# What a run does, in this order: reading data and model, waiting for batches, steps, evaluation, checkpoints, results.
ACTIVITIES = ("start", "data", "steps", "evaluating", "saving", "end")


class Clock:
    """Seconds spent in each activity by this process; nothing that a run computes depends on them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(ACTIVITIES, 0.0)

    @contextmanager
    def measure(self, activity: str) -> Iterator[None]:
        """Count the time of a block."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[activity] += time.monotonic() - start

    def wait_for(self, batches: Iterable[T]) -> Iterator[T]:
        """The batches; the time until each is there counts as data."""
        iterator = iter(batches)
        while True:
            with self.measure("data"):
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
            yield batch

    @property
    def training(self) -> float:
        """Seconds of batches and steps."""
        return self.seconds["data"] + self.seconds["steps"]

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        parts = [f"{name} {time_text(value)}" for name, value in self.seconds.items() if value > 0.01 * total]
        return f"{time_text(total)}: {', '.join(parts)}"


def time_text(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits or so: 9.5 s, 12 min, 3.4 h."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{seconds / 3600:.1f} h"
