"""Do two layers span the same directions? SVCCA: canonical correlations of their main components.

Reference: Raghu et al. 2017 (arXiv 1706.05806).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.analysis.moments import Moments


def svcca(moments: Moments, keep: float = 0.99) -> float:
    """Mean canonical correlation between the directions that carry `keep` of each view's variance."""
    found = canonical_correlations(moments, keep)
    return float(found.mean()) if len(found) else float("nan")


def canonical_correlations(moments: Moments, keep: float = 0.99) -> Float[Tensor, " r"]:
    """Singular values of Λx^(−½) Uxᵀ Cov(x, y) Uy Λy^(−½), falling, with U Λ Uᵀ the kept part of each variance."""
    if not 0 < keep <= 1:
        raise ValueError(f"keep must lie in (0, 1], not {keep}")
    variance_x, variance_y, covariance = moments.covariances()
    left, right = whitening(variance_x, keep), whitening(variance_y, keep)
    return torch.linalg.svdvals(left.T @ covariance @ right).clamp(max=1.0)


def whitening(variance: Float[Tensor, "p p"], keep: float) -> Float[Tensor, "p r"]:
    """U Λ^(−½) for the fewest leading directions that carry `keep` of the variance; rounding is no direction."""
    values, vectors = torch.linalg.eigh(variance)
    values, vectors = values.flip(0), vectors.flip(1)
    real = values > len(values) * torch.finfo(values.dtype).eps * values[0]
    carried = values.clamp(min=0).cumsum(0) / values.clamp(min=0).sum()
    needed = int((carried < keep * (1 - 1e-12)).sum()) + 1
    rank = min(needed, int(real.sum()))
    return vectors[:, :rank] / values[:rank].sqrt()
