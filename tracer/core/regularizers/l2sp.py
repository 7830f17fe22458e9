"""L2-SP: an L2 penalty on the distance from the pretrained weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from tracer.core.regularizers.base import Attached, Pair, pairs
from tracer.core.validation import require

Form = Literal["loss", "decoupled"]


@dataclass(frozen=True)
class L2SP:
    """(λ/2) Σ ‖θ − θ₀‖²: form="loss" adds its gradient, form="decoupled" decays to θ₀ after the optimiser step.

    The two differ under Adam, which rescales gradients but not the decay. A classification head is regularized
    toward its initial weights, or not at all with head=False. Reference: Li et al. (arXiv 1802.01483).
    """

    strength: float = 0.01
    form: Form = "loss"
    head: bool = True
    copies: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 <= self.strength < math.inf:
            raise ValueError(f"L2-SP needs a strength of 0 or more, not {self.strength}")
        require("form of L2-SP", self.form, Form)

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached:
        return _AttachedL2SP(self, pairs(parameters, anchors, head=self.head))


class _AttachedL2SP(Attached):
    def __init__(self, regularizer: L2SP, pairs: list[Pair]) -> None:
        self.regularizer, self.pairs = regularizer, pairs

    @torch.no_grad()
    def pull(self) -> None:
        if self.regularizer.form == "loss":
            trained = [(grad, p, a) for _, p, a in self.pairs if (grad := p.grad) is not None]
            changes = torch._foreach_sub([p for _, p, _ in trained], [a for _, _, a in trained])
            torch._foreach_add_([grad for grad, _, _ in trained], changes, alpha=self.regularizer.strength)

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        if self.regularizer.form == "decoupled":
            parameters, anchors = [p for _, p, _ in self.pairs], [a for _, _, a in self.pairs]
            torch._foreach_lerp_(parameters, anchors, min(1.0, lr * self.regularizer.strength))
