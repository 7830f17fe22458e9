"""FTP: a leash to the pretrained weights whose length is learned as training goes."""

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
    """θ ← θ₀ + min(1, γ/n) (θ − θ₀) after every step, n the Σ|·| of a row, γ one radius a tensor.

    γ starts at 1e-8 and descends on the loss by Adam: ∂L/∂γ = Σ_rows ⟨∇θ, c⟩ / n, c and n of the step before,
    c being θ − θ₀ before it was projected; `keenness` k ≤ 1 weakens the shrinking of γ. A `radius` fixes γ
    instead. Use it without weight decay; heads run free. Reference: FTP (arXiv 2310.19182).
    """

    keenness: float = 1.0
    rate: float = 1e-2
    radius: float | None = None
    head: bool = False
    copies: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 <= self.keenness <= 1:
            raise ValueError(f"FTP's keenness is in [0, 1], not {self.keenness}")
        if self.radius is not None and self.radius < 0:
            raise ValueError(f"a radius is not negative: {self.radius}")

    def attach(self, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]) -> Attached:
        return _Leash(self, pairs(parameters, anchors, head=self.head))


class _Leash:
    """All radii are one vector, so that Adam on them is a handful of operations without a host's glance."""

    def __init__(self, regularizer: FTP, held: list[Pair]) -> None:
        self.regularizer, self.held = regularizer, held
        first = held[0].parameter if held else torch.zeros(())
        start = TINY if regularizer.radius is None else regularizer.radius
        dtype = torch.promote_types(first.dtype, torch.float32)
        self.radii = torch.full((len(held),), start, dtype=dtype, device=first.device)
        self.mean, self.square = torch.zeros_like(self.radii), torch.zeros_like(self.radii)
        self.updates = 0
        self.changes: list[Tensor] = []  # θ − θ₀ of the last step, before it was projected

    @torch.no_grad()
    def pull(self) -> None:
        if self.regularizer.radius is not None or not self.changes:
            return
        slopes = torch.stack([_slope(p.parameter, c) for p, c in zip(self.held, self.changes, strict=True)])
        self._descend(torch.where(slopes > 0, self.regularizer.keenness * slopes, slopes))

    @torch.no_grad()
    def clamp(self, lr: float) -> None:
        del lr
        learned = self.regularizer.radius is None
        if learned:
            self.changes = [pair.parameter - pair.anchor for pair in self.held]
            # Not max(): of a tensor cut into shards, some may be empty.
            farthest = torch.stack([norms(change).topk(1).values[0] for change in self.changes])
            self.radii = self.radii.clamp(min=TINY).minimum(farthest)
        for pair, radius in zip(self.held, self.radii, strict=True):
            pair.parameter.copy_(project(pair.anchor, pair.parameter, radius))

    def _descend(self, slopes: Tensor) -> None:
        """One step of Adam on the radii."""
        self.updates += 1
        self.mean = self.mean.lerp(slopes, 1 - BETAS[0])
        self.square = self.square.lerp(slopes.square(), 1 - BETAS[1])
        mean = self.mean / (1 - BETAS[0] ** self.updates)
        square = self.square / (1 - BETAS[1] ** self.updates)
        self.radii = self.radii - self.regularizer.rate * mean / (square.sqrt() + TINY)

    def state_dict(self) -> dict[str, Any]:
        changes = {f"change/{p.name}": c for p, c in zip(self.held, self.changes, strict=False)}
        adam = {"radii": self.radii, "mean": self.mean, "square": self.square}
        return {**changes, **adam, "updates": torch.tensor(self.updates)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        device = self.radii.device
        self.radii, self.mean, self.square = (state[key].to(device) for key in ("radii", "mean", "square"))
        self.updates = int(state["updates"])
        if any(key.startswith("change/") for key in state):
            self.changes = [state[f"change/{pair.name}"].to(device) for pair in self.held]


def _slope(parameter: Tensor, change: Tensor) -> Tensor:
    """∂L/∂γ = Σ_rows ⟨∇θ, c⟩ / n."""
    if parameter.grad is None:
        return change.new_zeros(())
    products = parameter.grad * change
    rows = products.flatten(1) if products.ndim > 1 else products.reshape(1, -1)
    return (rows.sum(dim=1) / norms(change)).sum()
