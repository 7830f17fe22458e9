"""The directions that a stream of vectors spans, in bounded memory."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


class Sketch:
    """A k × d factor B with BᵀB ≈ AᵀA for all rows A added so far (frequent directions, arXiv 1501.01711).

    It is exact up to `limit` directions. Beyond that, every direction loses the energy of the first one dropped,
    so that 0 ⪯ AᵀA − BᵀB ⪯ (energy outside the leading k) / (limit − k) for every k < limit.
    """

    def __init__(self, width: int, limit: int = 512) -> None:
        if limit < 1:
            raise ValueError(f"a sketch holds 1 or more directions, not {limit}")
        self.limit = min(limit, width)
        self.factor = torch.zeros(0, width, dtype=torch.float64)
        self.energy = 0.0  # ‖A‖², exactly

    def add(self, rows: Float[Tensor, "m d"]) -> None:
        rows = rows.detach().to("cpu", torch.float64)
        self.energy += float(rows.square().sum())
        for block in rows.split(self.limit):
            self._absorb(block)

    def _absorb(self, rows: Float[Tensor, "m d"]) -> None:
        _, values, directions = torch.linalg.svd(torch.cat([self.factor, rows]), full_matrices=False)
        squares = values.square()
        if len(squares) > self.limit:
            squares = (squares - squares[self.limit]).clamp_min(0)[: self.limit]
        nonzero = values[: len(squares)] > values[:1] * torch.finfo(torch.float64).eps * max(directions.shape)
        self.factor = squares.sqrt()[nonzero, None] * directions[: len(squares)][nonzero]

    def basis(self, energy: float = 1.0) -> Float[Tensor, "d r"]:
        """Orthonormal: the fewest leading directions that hold this share of the energy; 1 is all of them."""
        if not 0 < energy <= 1:
            raise ValueError(f"a share of energy lies in (0, 1], not {energy}")
        values, directions = torch.linalg.svd(self.factor, full_matrices=False)[1:]
        selected = values > values[:1] * torch.finfo(torch.float64).eps * max(directions.shape)
        if energy < 1:
            before = values.square().cumsum(0) - values.square()
            selected &= before < energy * self.energy
        return directions[selected].T
