"""SPD: decay toward the pretrained weights, only in tensors whose negative gradient points back to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tracer.core.regularizers.base import Attached, Pair, pairs


@dataclass(frozen=True)
class SPD:
    """θ ← θ̃ − λ r (θ̃ − θ₀) where ⟨∇θ, θ − θ₀⟩ > 0, else θ ← θ̃, tensor by tensor; θ̃ is θ after the optimiser.

    r = clip( (‖θ̃ − θ₀‖ − ‖θ − θ₀‖) / ‖θ̃ − θ₀‖, 0, 1 ) is the fraction of the distance added by this step.
    Use it without weight decay. Reference: Selective Projection Decay (arXiv 2411.01713).
    """

    strength: float = 1.0
    head: bool = False
    copies: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 <= self.strength < math.inf:
            raise ValueError(f"SPD needs a strength of 0 or more, not {self.strength}")

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached:
        return _AttachedSPD(self, pairs(parameters, anchors, head=self.head))


class _AttachedSPD(Attached):
    def __init__(self, regularizer: SPD, pairs: list[Pair]) -> None:
        self.regularizer, self.pairs = regularizer, pairs
        self.before: list[tuple[Tensor, Tensor]] = []  # ⟨∇θ, θ − θ₀⟩ > 0, ‖θ − θ₀‖

    @torch.no_grad()
    def pull(self) -> None:
        self.before = [_direction_and_distance(pair) for pair in self.pairs]

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        del lr
        for pair, (outward, before) in zip(self.pairs, self.before, strict=True):
            after = (pair.parameter - pair.anchor).norm()
            ratio = ((after - before) / after).nan_to_num(0).clamp(0, 1)  # 0/0 where nothing has moved
            pair.parameter.lerp_(pair.anchor, torch.where(outward, self.regularizer.strength * ratio, 0.0))
        self.before = []


def _direction_and_distance(pair: Pair) -> tuple[Tensor, Tensor]:
    change = pair.parameter - pair.anchor
    if pair.parameter.grad is None:
        return torch.zeros((), dtype=torch.bool, device=change.device), change.norm()
    return (pair.parameter.grad * change).sum() > 0, change.norm()
