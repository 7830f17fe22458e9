"""The learning rate as a function of the step: there is no scheduler state to save."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Learning rate by step: linear warm-up to `peak`, then cosine decay to zero at `steps`."""

    peak: float
    warmup: int
    steps: int

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        progress = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.peak * (1 + math.cos(math.pi * progress)) / 2
