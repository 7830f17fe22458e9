"""How sure a number is: Student's interval over seeds, Wilson's over samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Z = 1.959964  # 97.5 % quantile of the normal distribution

# fmt: off
T = (  # 97.5 % quantiles of Student's t for 1…30 degrees of freedom
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)
# fmt: on


class Estimate(NamedTuple):
    """A value, the ends of its 95 % interval where there is one, and the seeds behind it."""

    value: float
    low: float | None = None
    high: float | None = None
    seeds: int = 1

    @property
    def half(self) -> float | None:
        """Half the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean x̄ with x̄ ± t s/√n, Student's interval; one seed has no interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    quantile = T[n - 2] if n - 2 < len(T) else Z
    half = quantile * deviation / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def wilson(share: float, n: int) -> Estimate:
    """A share of n samples with its 95 % score interval (Wilson 1927), which stays inside [0, 1]."""
    if not 0 <= share <= 1 or n < 1:
        return Estimate(share)
    centre = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return Estimate(share, max(0.0, centre - half), min(1.0, centre + half))
