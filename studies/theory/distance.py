"""How far apart two answers are, and by how much an inequality fails: relative, and never blind to a NaN."""

from __future__ import annotations

import numpy as np
from numpy import ndarray


def apart(ours: ndarray | float, theirs: ndarray | float, scale: float = 0.0) -> float:
    """The distance of two answers relative to the larger of them, or to `scale` if that is larger still."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    unit = worst(np.linalg.norm(ours), np.linalg.norm(theirs), scale)
    return float(np.linalg.norm(ours - theirs)) / unit if unit != 0 else 0.0


def excess(small: ndarray | float, large: ndarray | float, scale: float | None = None) -> float:
    """By how much small ≤ large fails at worst, relative to `scale` or to the largest value of `large`."""
    small, large = np.asarray(small, dtype=float), np.asarray(large, dtype=float)
    unit = float(np.abs(large).max()) if scale is None else scale
    over = worst(0.0, (small - large).max())
    return over / unit if unit != 0 else over


def worst(*violations: float | np.floating) -> float:
    """The largest; unlike with `max`, a NaN is never lost."""
    return float(np.array(violations, dtype=float).max())
