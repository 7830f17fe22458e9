"""The task subspace, which the finetuning inputs span, and its complement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@dataclass(frozen=True)
class Subspace:
    """range(X) by a thin factorisation X = U S Vᵀ of rank r; no d × d matrix is ever formed.

    The projector P = U Uᵀ is applied, not built: `inside(W)` is W P, `outside(W)` is W (I − P).
    """

    basis: Float[ndarray, "d r"]  # U, orthonormal columns
    spectrum: Float[ndarray, " r"]  # S, positive and falling
    loadings: Float[ndarray, "n r"]  # V, orthonormal columns

    @property
    def rank(self) -> int:
        return len(self.spectrum)

    def coordinates(self, weights: Float[ndarray, "*k d"]) -> Float[ndarray, "*k r"]:
        """W U: the rows of W in coordinates of the subspace."""
        return weights @ self.basis

    def lift(self, coordinates: Float[ndarray, "*k r"]) -> Float[ndarray, "*k d"]:
        """A Uᵀ: weights from coordinates."""
        return coordinates @ self.basis.T

    def inside(self, weights: Float[ndarray, "*k d"]) -> Float[ndarray, "*k d"]:
        return self.lift(self.coordinates(weights))

    def outside(self, weights: Float[ndarray, "*k d"]) -> Float[ndarray, "*k d"]:
        return weights - self.inside(weights)


def spanned(inputs: Float[ndarray, "d n"], tolerance: float | None = None) -> Subspace:
    """The subspace spanned by the columns, in O(d n min(d, n)).

    Directions with singular values up to tolerance · (the largest) are rounding, not data; the default is
    max(d, n) · machine epsilon.
    """
    basis, spectrum, loadings = np.linalg.svd(inputs, full_matrices=False)
    if tolerance is None:
        tolerance = max(inputs.shape) * float(np.finfo(inputs.dtype).eps)
    rank = int((spectrum > tolerance * spectrum.max(initial=0.0)).sum())
    return Subspace(basis[:, :rank], spectrum[:rank], loadings[:rank].T)
