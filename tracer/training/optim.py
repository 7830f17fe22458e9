"""AdamW and its schedule. The rate is a function of the step, so there is no scheduler state to save."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.optim import AdamW

from tracer.core.errors import unknown

Decay = Literal["matrices", "all"]


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up to `peak`, then a cosine down to zero at `steps`."""

    peak: float
    warmup: int
    steps: int

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.peak * (1 + math.cos(math.pi * done)) / 2


def adamw(model: nn.Module, decay: float, decay_on: Decay = "matrices") -> AdamW:
    """Fused AdamW over the trainable parameters.

    Decay acts on matrices and leaves biases, norms and the temperature alone; "all" decays everything, as the
    released recipes do.
    """
    if decay_on not in ("matrices", "all"):
        raise unknown("choice of decay", decay_on, ("matrices", "all"))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decayed = [p for p in trained if decay_on == "all" or p.ndim >= 2]
    spared = [p for p in trained if decay_on != "all" and p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": decay}, {"params": spared, "weight_decay": 0.0}]
    return AdamW([group for group in groups if group["params"]], lr=0.0, fused=_fusible(trained))


def _fusible(parameters: list[nn.Parameter]) -> bool:
    return all(p.device.type in ("cpu", "cuda", "mps") and torch.is_floating_point(p) for p in parameters)
