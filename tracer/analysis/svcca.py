"""SVCCA: canonical correlations of the principal components of two layers' features.

Reference: Raghu et al. 2017 (arXiv 1706.05806).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.analysis.moments import Moments


def svcca(moments: Moments, keep: float = 0.99) -> float:
    """Mean canonical correlation of the directions that explain the share `keep` of each view's variance."""
    correlations = canonical_correlations(moments, keep)
    return float(correlations.mean()) if len(correlations) else float("nan")


def canonical_correlations(moments: Moments, keep: float = 0.99) -> Float[Tensor, " r"]:
    """Singular values of Λx^(−½) Uxᵀ Cov(x, y) Uy Λy^(−½), descending; U Λ Uᵀ is the kept part of each variance."""
    if not 0 < keep <= 1:
        raise ValueError(f"keep must lie in (0, 1], not {keep}")
    variance_x, variance_y, covariance = moments.covariances()
    left, right = whitening(variance_x, keep), whitening(variance_y, keep)
    return torch.linalg.svdvals(left.T @ covariance @ right).clamp(max=1.0)


def whitening(variance: Float[Tensor, "p p"], keep: float) -> Float[Tensor, "p r"]:
    """U Λ^(−½) of the fewest leading directions that explain the share `keep`; rounding errors are left out."""
    values, vectors = torch.linalg.eigh(variance)
    values, vectors = values.flip(0), vectors.flip(1)
    nonzero = values > len(values) * torch.finfo(values.dtype).eps * values[0]
    explained = values.clamp(min=0).cumsum(0) / values.clamp(min=0).sum()
    needed = int((explained < keep * (1 - 1e-12)).sum()) + 1
    rank = min(needed, int(nonzero.sum()))
    return vectors[:, :rank] / values[:rank].sqrt()
