"""Linear CKA, the similarity of two layers' features on the same samples, with the unbiased HSIC.

References: Kornblith et al. 2019 (arXiv 1905.00414), Song et al. 2012 for the estimator, Nguyen et al. 2021
(arXiv 2010.15327) for minibatches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from jaxtyping import Float
from torch import Tensor

from tracer.analysis.moments import Moments

MIN_SAMPLES = 4  # below it the unbiased estimator is not defined


def hsic(k: Float[Tensor, "n n"], m: Float[Tensor, "n n"]) -> float:
    """Unbiased HSIC of two Gram matrices, whose diagonals are ignored:

    [tr(KM) + 1ᵀK1 · 1ᵀM1 / ((n−1)(n−2)) − 2/(n−2) · 1ᵀKM1] / (n(n−3)).
    """
    n = _enough(len(k))
    k, m = k.double().clone().fill_diagonal_(0), m.double().clone().fill_diagonal_(0)
    return _combine(
        n, float((k * m).sum()), float(k.sum()), float(m.sum()), float(k.sum(dim=0) @ m.sum(dim=0))
    )


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


def _hsic(n: int, x: Float[Tensor, " p"], y: Float[Tensor, " q"], xy: Float[Tensor, "p q"]) -> float:
    """Unbiased HSIC from sums over augmented samples (see `moments`), without forming K = X Xᵀ."""
    _enough(n)
    (s, q), (t, r) = (x[:-1], x[-1]), (y[:-1], y[-1])
    table, right, below, corner = xy[:-1, :-1], xy[:-1, -1], xy[-1, :-1], xy[-1, -1]
    trace = table.square().sum() - corner
    crossed = s @ table @ t - s @ right - below @ t + corner
    return _combine(n, float(trace), float(s @ s - q), float(t @ t - r), float(crossed))


def _combine(n: int, trace: float, sum_k: float, sum_m: float, crossed: float) -> float:
    return (trace + sum_k * sum_m / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)) / (n * (n - 3))


def _enough(n: int) -> int:
    if n < MIN_SAMPLES:
        raise ValueError(f"the unbiased HSIC needs {MIN_SAMPLES} samples or more, not {n}")
    return n
