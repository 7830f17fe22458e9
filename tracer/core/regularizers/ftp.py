"""FTP: projection onto a ball around the pretrained weights, with a learned radius per tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from tracer.core.projection import TINY, norms, project
from tracer.core.regularizers.base import Attached, Pair, pairs

BETAS = (0.9, 0.999)


@dataclass(frozen=True)
class FTP:
    """θ ← θ₀ + min(1, γ/n) (θ − θ₀) after every step, row by row, n the L1 norm of a row, γ a radius per tensor.

    γ starts at 1e-8 and is trained by Adam with learning rate `rate`: ∂L/∂γ = Σ_rows ⟨∇θ, c⟩ / n, with c = θ − θ₀
    and n of the previous step before its projection, and 0 at the first step. `keenness` ≤ 1 scales the gradients
    that shrink γ. A `radius` fixes γ instead. Use it without weight decay. Heads are projected only with head=True.
    Reference: FTP (arXiv 2310.19182).
    """

    keenness: float = 1.0
    rate: float = 1e-2
    radius: float | None = None
    head: bool = False
    copies: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 <= self.keenness <= 1:
            raise ValueError(f"FTP needs a keenness in [0, 1], not {self.keenness}")
        if self.radius is not None and self.radius < 0:
            raise ValueError(f"FTP needs a radius of 0 or more, not {self.radius}")

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached:
        return _AttachedFTP(self, pairs(parameters, anchors, head=self.head))


class _AttachedFTP:
    """All radii are one vector, so that Adam takes a few kernel launches and no host-device synchronisation."""

    def __init__(self, regularizer: FTP, pairs: list[Pair]) -> None:
        self.regularizer, self.pairs = regularizer, pairs
        first = pairs[0].parameter if pairs else torch.zeros(())
        start = TINY if regularizer.radius is None else regularizer.radius
        dtype = torch.promote_types(first.dtype, torch.float32)
        self.radii = torch.full((len(pairs),), start, dtype=dtype, device=first.device)
        self.mean, self.square = torch.zeros_like(self.radii), torch.zeros_like(self.radii)
        self.steps = 0
        self.changes: list[Tensor] = []  # θ − θ₀ of the previous step, before its projection

    @torch.no_grad()
    def pull(self) -> None:
        if self.regularizer.radius is not None:
            return
        self.steps += 1
        if not self.changes:  # Adam with the gradient 0: only its step count changes
            return
        gradients = torch.stack(
            [_radius_gradient(p.parameter, c) for p, c in zip(self.pairs, self.changes, strict=True)]
        )
        self._adam_step(torch.where(gradients > 0, self.regularizer.keenness * gradients, gradients))

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        del lr
        if self.pairs and self.regularizer.radius is None:
            self.changes = [pair.parameter - pair.anchor for pair in self.pairs]
            # Not max(): of a sharded tensor, some shards may be empty.
            largest = torch.stack([norms(change).topk(1).values[0] for change in self.changes])
            self.radii = self.radii.clamp(min=TINY).minimum(largest)
        for pair, radius in zip(self.pairs, self.radii, strict=True):
            pair.parameter.copy_(project(pair.anchor, pair.parameter, radius))

    def _adam_step(self, gradients: Tensor) -> None:
        self.mean = self.mean.lerp(gradients, 1 - BETAS[0])
        self.square = self.square.lerp(gradients.square(), 1 - BETAS[1])
        mean = self.mean / (1 - BETAS[0] ** self.steps)
        square = self.square / (1 - BETAS[1] ** self.steps)
        self.radii = self.radii - self.regularizer.rate * mean / (square.sqrt() + TINY)

    def state_dict(self) -> dict[str, Any]:
        changes = {f"change/{p.name}": c for p, c in zip(self.pairs, self.changes, strict=False)}
        adam = {"radii": self.radii, "mean": self.mean, "square": self.square}
        return {**changes, **adam, "steps": torch.tensor(self.steps)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        device = self.radii.device
        self.radii, self.mean, self.square = (state[key].to(device) for key in ("radii", "mean", "square"))
        if any(key.startswith("change/") for key in state):
            self.changes = [state[f"change/{pair.name}"].to(device) for pair in self.pairs]
        # Version 0.1 counted the updates of γ, one less than the steps.
        self.steps = int(state["steps"]) if "steps" in state else int(state["updates"]) + bool(self.changes)


def _radius_gradient(parameter: Tensor, change: Tensor) -> Tensor:
    """∂L/∂γ = Σ_rows ⟨∇θ, c⟩ / n."""
    if parameter.grad is None:
        return change.new_zeros(())
    products = parameter.grad * change
    rows = products.flatten(1) if products.ndim > 1 else products.reshape(1, -1)
    return (rows.sum(dim=1) / norms(change)).sum()
