"""SPD: decay toward the pretrained weights, only where a step goes against the way travelled so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from tracer.core.regularizers.base import Attached, Pair, pairs


@dataclass(frozen=True)
class SPD:
    """θ ← θ̃ − λ r (θ̃ − θ₀) where ⟨∇θ, θ − θ₀⟩ > 0, else θ ← θ̃, tensor by tensor; θ̃ is the optimiser's step.

    r = clip( (‖θ̃ − θ₀‖ − ‖θ − θ₀‖) / ‖θ̃ − θ₀‖, 0, 1 ) is the share of the distance that this step added. Use
    it without weight decay. Reference: Selective Projection Decay (arXiv 2411.01713).
    """

    strength: float = 1.0
    head: bool = False
    copies: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise ValueError(f"a strength is not negative: {self.strength}")

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached:
        return _Selective(self, pairs(parameters, anchors, head=self.head))


class _Selective:
    def __init__(self, regularizer: SPD, held: list[Pair]) -> None:
        self.regularizer, self.held = regularizer, held
        self.before: list[tuple[Tensor, Tensor]] = []  # does the gradient point outward, and how far were we

    @torch.no_grad()
    def pull(self) -> None:
        self.before = [_outlook(pair) for pair in self.held]

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        del lr
        for pair, (outward, distance) in zip(self.held, self.before, strict=True):
            far = (pair.parameter - pair.anchor).norm()
            share = ((far - distance) / far).nan_to_num(0).clamp(0, 1)  # 0/0 where nothing has moved
            pair.parameter.lerp_(pair.anchor, torch.where(outward, self.regularizer.strength * share, 0.0))
        self.before = []

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state  # between two steps there is nothing to remember


def _outlook(pair: Pair) -> tuple[Tensor, Tensor]:
    change = pair.parameter - pair.anchor
    if pair.parameter.grad is None:
        return torch.zeros((), dtype=torch.bool, device=change.device), change.norm()
    return (pair.parameter.grad * change).sum() > 0, change.norm()
