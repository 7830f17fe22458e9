"""AdamW, and its learning rate as a function of the step: there is no scheduler state to save."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import nn
from torch.optim import AdamW

from tracer.core.validation import require

Decay = Literal["matrices", "all"]


def adamw(model: nn.Module, decay: float, decay_on: Decay = "matrices") -> AdamW:
    """Fused AdamW over the trainable parameters.

    Weight decay applies to matrices, not to biases, norms and the temperature; "all" applies it to all parameters, as
    the released recipes do.
    """
    require("choice of decay", decay_on, Decay)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decayed = [p for p in trainable if decay_on == "all" or p.ndim >= 2]
    undecayed = [p for p in trainable if decay_on != "all" and p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": decay}, {"params": undecayed, "weight_decay": 0.0}]
    fused = all(p.device.type in ("cpu", "cuda", "mps") and p.is_floating_point() for p in trainable)
    return AdamW([group for group in groups if group["params"]], lr=0.0, fused=fused)


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
