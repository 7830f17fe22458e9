"""What holds the weights back: a tether is a policy, and fastened to parameters it becomes a hold.

A hold acts twice in a step: `pull` after backward may edit gradients, `clamp` after the optimiser may edit the
weights. Both work on lists of tensors with fused operations, so they are local to each shard of a sharded model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from tracer.errors import unknown


class Hold(Protocol):
    """A tether fastened to parameters and to the weights they are held to."""

    def pull(self) -> None: ...
    def clamp(self, lr: float) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Tether(Protocol):
    """How parameters are held to their anchors (the pretrained weights)."""

    def fasten(self, parameters: Sequence[Tensor], anchors: Sequence[Tensor]) -> Hold: ...


@dataclass(frozen=True)
class L2SP:
    """(λ/2) Σ ‖θ − θ₀‖²: form="loss" adds its gradient, form="decoupled" decays toward θ₀ after the optimiser.

    The two differ under Adam, which rescales gradients but not decay. Reference: Li et al. (arXiv 1802.01483).
    """

    strength: float
    form: Literal["loss", "decoupled"] = "loss"

    def __post_init__(self) -> None:
        if self.form not in ("loss", "decoupled"):
            raise unknown("form of L2-SP", self.form, ("loss", "decoupled"))

    def fasten(self, parameters: Sequence[Tensor], anchors: Sequence[Tensor]) -> Hold:
        return _Spring(self, list(parameters), list(anchors))


class _Spring:
    def __init__(self, tether: L2SP, parameters: list[Tensor], anchors: list[Tensor]) -> None:
        self.tether, self.parameters, self.anchors = tether, parameters, anchors

    @torch.no_grad()
    def pull(self) -> None:
        if self.tether.form == "loss":
            pairs = [(p, a) for p, a in zip(self.parameters, self.anchors, strict=True) if p.grad is not None]
            gaps = torch._foreach_sub([p for p, _ in pairs], [a for _, a in pairs])
            torch._foreach_add_([p.grad for p, _ in pairs], gaps, alpha=self.tether.strength)

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        if self.tether.form == "decoupled":
            torch._foreach_lerp_(self.parameters, self.anchors, min(1.0, lr * self.tether.strength))

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state  # a spring remembers nothing
