"""Relative distance of two results, and relative violation of an inequality; NaN is propagated."""

from __future__ import annotations

import numpy as np
from numpy import ndarray


def relative_distance(ours: ndarray | float, theirs: ndarray | float, scale: float = 0.0) -> float:
    """The distance of two results relative to the larger norm, or to `scale` if that is larger still."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    unit = worst(np.linalg.norm(ours), np.linalg.norm(theirs), scale)
    return float(np.linalg.norm(ours - theirs)) / unit if unit != 0 else 0.0


def excess(small: ndarray | float, large: ndarray | float, scale: float | None = None) -> float:
    """The largest violation of small ≤ large, relative to `scale` or to the largest value of `large`."""
    small, large = np.asarray(small, dtype=float), np.asarray(large, dtype=float)
    unit = float(np.abs(large).max()) if scale is None else scale
    over = worst(0.0, (small - large).max())
    return over / unit if unit != 0 else over


def worst(*violations: float | np.floating) -> float:
    """The largest violation; NaN if one of them is, unlike with `max`."""
    return float(np.array(violations, dtype=float).max())
