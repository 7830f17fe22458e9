"""Sums over samples from which CKA and SVCCA follow exactly, in memory that does not grow with their number.

Each sample's features x are augmented by a column with their squared length |x|². The second moments of these
rows are all that the unbiased HSIC of linear kernels needs:

    Σ x yᵀ,   Σ x |y|²,   Σ |x|² yᵀ,   Σ |x|² |y|².
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


class Moments:
    """Running sums of two views of the same samples, in float64.

    Features are shifted by the mean of the first batch, which changes neither measure and avoids cancellation.
    """

    def __init__(self) -> None:
        self.count = 0
        self.shift: tuple[Tensor, Tensor] | None = None
        self.sums: tuple[Tensor, Tensor]
        self.xx: Tensor
        self.yy: Tensor
        self.xy: Tensor

    def add(self, x: Float[Tensor, "n p"], y: Float[Tensor, "n q"]) -> None:
        """Add one batch; row i of both views is the same sample."""
        if len(x) != len(y):
            raise ValueError(f"two views of the same samples expected, not of {len(x)} and {len(y)}")
        x, y = x.detach().double().cpu(), y.detach().double().cpu()
        if self.shift is None:
            self.shift = (x.mean(dim=0), y.mean(dim=0))
            p, q = x.shape[1] + 1, y.shape[1] + 1
            self.sums = (torch.zeros(p, dtype=x.dtype), torch.zeros(q, dtype=x.dtype))
            self.xx, self.yy, self.xy = (
                torch.zeros(size, dtype=x.dtype) for size in ((p, p), (q, q), (p, q))
            )
        a, b = augmented(x - self.shift[0]), augmented(y - self.shift[1])
        self.count += len(x)
        self.sums = (self.sums[0] + a.sum(dim=0), self.sums[1] + b.sum(dim=0))
        self.xx += a.T @ a
        self.yy += b.T @ b
        self.xy += a.T @ b

    def covariances(
        self,
    ) -> tuple[Float[Tensor, "p p"], Float[Tensor, "q q"], Float[Tensor, "p q"]]:
        """Cov(x, x), Cov(y, y) and Cov(x, y), with n in the denominator."""
        if self.count < 2:
            raise ValueError(f"a covariance needs 2 samples or more, not {self.count}")
        mean_x, mean_y = (total[:-1] / self.count for total in self.sums)
        return (
            self.xx[:-1, :-1] / self.count - mean_x.outer(mean_x),
            self.yy[:-1, :-1] / self.count - mean_y.outer(mean_y),
            self.xy[:-1, :-1] / self.count - mean_x.outer(mean_y),
        )


def augmented(x: Float[Tensor, "n p"]) -> Float[Tensor, "n p+1"]:
    """Rows with their squared length as the last column."""
    return torch.cat([x, x.square().sum(dim=1, keepdim=True)], dim=1)
