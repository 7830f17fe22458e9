"""L2-SP: a spring to the pretrained weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from tracer.core.errors import unknown
from tracer.core.regularizers.base import Attached, Pair, pairs


@dataclass(frozen=True)
class L2SP:
    """(λ/2) Σ ‖θ − θ₀‖²: form="loss" adds its gradient, form="decoupled" decays to θ₀ after the optimiser.

    The two differ under Adam, which rescales gradients but not decay. A classification head is held to its
    start, or left free with head=False. Reference: Li et al. (arXiv 1802.01483).
    """

    strength: float = 0.01
    form: Literal["loss", "decoupled"] = "loss"
    head: bool = True
    copies: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.form not in ("loss", "decoupled"):
            raise unknown("form of L2-SP", self.form, ("loss", "decoupled"))

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached:
        return _Spring(self, pairs(parameters, anchors, head=self.head))


class _Spring:
    def __init__(self, regularizer: L2SP, held: list[Pair]) -> None:
        self.regularizer, self.held = regularizer, held

    @torch.no_grad()
    def pull(self) -> None:
        if self.regularizer.form == "loss":
            moved = [(grad, p, a) for _, p, a in self.held if (grad := p.grad) is not None]
            gaps = torch._foreach_sub([p for _, p, _ in moved], [a for _, _, a in moved])
            torch._foreach_add_([grad for grad, _, _ in moved], gaps, alpha=self.regularizer.strength)

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        if self.regularizer.form == "decoupled":
            far = min(1.0, lr * self.regularizer.strength)
            torch._foreach_lerp_(
                [pair.parameter for pair in self.held], [pair.anchor for pair in self.held], far
            )

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state  # a spring remembers nothing
