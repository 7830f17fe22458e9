"""Similarity of two views of the same samples, such as the features of two layers: linear CKA and SVCCA.

Both follow exactly from sums over samples (`Moments`), in memory that does not grow with their number. References: CKA
Kornblith et al. 2019 (arXiv 1905.00414), with the unbiased HSIC of Song et al. 2012, in minibatches Nguyen et al. 2021
(arXiv 2010.15327); SVCCA Raghu et al. 2017 (arXiv 1706.05806).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

MIN_SAMPLES = 4  # below it the unbiased estimator is not defined


class Moments:
    """Running sums of two views of the same samples, in float64.

    Features are shifted by the mean of the first batch, which changes neither measure and avoids cancellation. Each
    sample's features x are augmented by their squared length |x|². The second moments of these rows are all that the
    unbiased HSIC of linear kernels needs: Σ x yᵀ, Σ x |y|², Σ |x|² yᵀ and Σ |x|² |y|².
    """

    def __init__(self) -> None:
        self.count = 0
        self.shift: tuple[Tensor, Tensor] | None = None
        zero = torch.zeros((), dtype=torch.float64)  # takes the shape of what is added first
        self.sums = (zero, zero)
        self.xx, self.yy, self.xy = zero, zero, zero

    def add(self, x: Float[Tensor, "n p"], y: Float[Tensor, "n q"]) -> None:
        """Add one batch; row i of both views is the same sample."""
        if len(x) != len(y):
            raise ValueError(f"two views of the same samples expected, not of {len(x)} and {len(y)}")
        x, y = x.detach().double().cpu(), y.detach().double().cpu()
        if self.shift is None:
            self.shift = (x.mean(dim=0), y.mean(dim=0))
        a, b = _augmented(x - self.shift[0]), _augmented(y - self.shift[1])
        self.count += len(x)
        self.sums = (self.sums[0] + a.sum(dim=0), self.sums[1] + b.sum(dim=0))
        self.xx = self.xx + a.T @ a
        self.yy = self.yy + b.T @ b
        self.xy = self.xy + a.T @ b

    def covariances(self) -> tuple[Float[Tensor, "p p"], Float[Tensor, "q q"], Float[Tensor, "p q"]]:
        """Cov(x, x), Cov(y, y) and Cov(x, y), with n in the denominator."""
        if self.count < 2:
            raise ValueError(f"a covariance needs 2 samples or more, not {self.count}")
        mean_x, mean_y = (total[:-1] / self.count for total in self.sums)
        return (
            self.xx[:-1, :-1] / self.count - mean_x.outer(mean_x),
            self.yy[:-1, :-1] / self.count - mean_y.outer(mean_y),
            self.xy[:-1, :-1] / self.count - mean_x.outer(mean_y),
        )


def hsic(k: Float[Tensor, "n n"], m: Float[Tensor, "n n"]) -> float:
    """Unbiased HSIC of two Gram matrices, whose diagonals are ignored:

    [tr(KM) + 1ᵀK1 · 1ᵀM1 / ((n−1)(n−2)) − 2/(n−2) · 1ᵀKM1] / (n(n−3)).
    """
    k, m = k.double().clone().fill_diagonal_(0), m.double().clone().fill_diagonal_(0)
    crossed = float(k.sum(dim=0) @ m.sum(dim=0))
    return _unbiased(len(k), float((k * m).sum()), float(k.sum()), float(m.sum()), crossed)


def linear_cka(moments: Moments) -> float:
    """HSIC(x, y) / √(HSIC(x, x) · HSIC(y, y)) over all samples added to `moments`, exactly.

    1: the same up to rotation and scale; near 0: unrelated. Noise in the estimate may take it out of [0, 1].
    """
    x, y = moments.sums
    cross = _hsic(moments.count, x, y, moments.xy)
    own = _hsic(moments.count, x, x, moments.xx) * _hsic(moments.count, y, y, moments.yy)
    return cross / math.sqrt(own) if own > 0 else math.nan


def minibatch_cka(batches: Iterable[tuple[Float[Tensor, "n p"], Float[Tensor, "n q"]]]) -> float:
    """CKA from the mean HSIC over batches: for features too wide for their second moments, e.g. all tokens."""
    cross = own_x = own_y = 0.0
    for x, y in batches:
        x, y = x.double() - x.double().mean(dim=0), y.double() - y.double().mean(dim=0)
        k, m = x @ x.T, y @ y.T
        cross, own_x, own_y = cross + hsic(k, m), own_x + hsic(k, k), own_y + hsic(m, m)
    own = own_x * own_y
    return cross / math.sqrt(own) if own > 0 else math.nan


def svcca(moments: Moments, keep: float = 0.99) -> float:
    """Mean canonical correlation of the directions that explain the share `keep` of each view's variance."""
    correlations = canonical_correlations(moments, keep)
    return float(correlations.mean()) if len(correlations) else math.nan


def canonical_correlations(moments: Moments, keep: float = 0.99) -> Float[Tensor, " r"]:
    """Singular values of Λx^(−½) Uxᵀ Cov(x, y) Uy Λy^(−½), descending; U Λ Uᵀ is the kept part of each variance."""
    if not 0 < keep <= 1:
        raise ValueError(f"keep must lie in (0, 1], not {keep}")
    variance_x, variance_y, covariance = moments.covariances()
    left, right = _whitening(variance_x, keep), _whitening(variance_y, keep)
    return torch.linalg.svdvals(left.T @ covariance @ right).clamp(max=1.0)


def _augmented(x: Float[Tensor, "n p"]) -> Float[Tensor, "n p+1"]:
    """Rows with their squared length as the last column."""
    return torch.cat([x, x.square().sum(dim=1, keepdim=True)], dim=1)


def _hsic(n: int, x: Float[Tensor, " p"], y: Float[Tensor, " q"], xy: Float[Tensor, "p q"]) -> float:
    """Unbiased HSIC from sums over augmented samples, without forming K = X Xᵀ."""
    (s, q), (t, r) = (x[:-1], x[-1]), (y[:-1], y[-1])
    table, right, below, corner = xy[:-1, :-1], xy[:-1, -1], xy[-1, :-1], xy[-1, -1]
    trace = table.square().sum() - corner
    crossed = s @ table @ t - s @ right - below @ t + corner
    return _unbiased(n, float(trace), float(s @ s - q), float(t @ t - r), float(crossed))


def _unbiased(n: int, trace: float, sum_k: float, sum_m: float, crossed: float) -> float:
    if n < MIN_SAMPLES:
        raise ValueError(f"the unbiased HSIC needs {MIN_SAMPLES} samples or more, not {n}")
    return (trace + sum_k * sum_m / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)) / (n * (n - 3))


def _whitening(variance: Float[Tensor, "p p"], keep: float) -> Float[Tensor, "p r"]:
    """U Λ^(−½) of the fewest leading directions that explain the share `keep`; rounding errors are left out."""
    values, vectors = torch.linalg.eigh(variance)
    values, vectors = values.flip(0), vectors.flip(1)
    nonzero = values > len(values) * torch.finfo(values.dtype).eps * values[0]
    explained = values.clamp(min=0).cumsum(0) / values.clamp(min=0).sum()
    needed = int((explained < keep * (1 - 1e-12)).sum()) + 1
    rank = min(needed, int(nonzero.sum()))
    return vectors[:, :rank] / values[:rank].sqrt()
