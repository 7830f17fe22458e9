"""Kernels: how much each moment of training counts in the teacher.

A kernel is a density on (0, 1) over normalised training time; any callable from float to float is one. Only
ratios matter to the average, yet the ones here integrate to 1, so that their values can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Kernel = Callable[[float], float]


@dataclass(frozen=True)
class Beta:
    """t^(a−1) (1−t)^(b−1) / B(a, b). Beta(½) is TRACER's: both ends of the path weigh most (arcsine law)."""

    a: float = 0.5
    b: float | None = None

    def __post_init__(self) -> None:
        if self.a <= 0 or self.right <= 0:
            raise ValueError(f"Beta needs positive shapes, not a={self.a}, b={self.right}")

    @property
    def right(self) -> float:
        """b, which is a where none is given."""
        return self.a if self.b is None else self.b

    def __call__(self, t: float) -> float:
        a, b = self.a, self.right
        log_norm = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        return math.exp((a - 1) * math.log(t) + (b - 1) * math.log1p(-t) - log_norm)


@dataclass(frozen=True)
class Uniform:
    """Every iterate counts the same: the running mean (Polyak averaging, SWA)."""

    def __call__(self, t: float) -> float:
        return 1.0


@dataclass(frozen=True)
class Early:
    """(p+1)(1−t)^p: the start of the path weighs most."""

    power: float = 1.0

    def __post_init__(self) -> None:
        _check_power(self.power)

    def __call__(self, t: float) -> float:
        return (self.power + 1) * (1 - t) ** self.power


@dataclass(frozen=True)
class Late:
    """(p+1) t^p: the end of the path weighs most."""

    power: float = 1.0

    def __post_init__(self) -> None:
        _check_power(self.power)

    def __call__(self, t: float) -> float:
        return (self.power + 1) * t**self.power


def _check_power(power: float) -> None:
    if power <= -1:
        raise ValueError(f"a power kernel needs a power above −1 to have an integral, not {power}")


@dataclass(frozen=True)
class Triangular:
    """Rises linearly to `peak`, then falls: the middle of the path weighs most."""

    peak: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.peak < 1:
            raise ValueError(f"Triangular needs its peak inside (0, 1), not {self.peak}")

    def __call__(self, t: float) -> float:
        return 2 * t / self.peak if t <= self.peak else 2 * (1 - t) / (1 - self.peak)


@dataclass(frozen=True)
class Exponential:
    """The kernel that makes a weighted average equal an EMA: α₀ = 1, α_k = (1−ρ) ρ^(−k).

    It is a density over steps, so it must know their number, the one its shadow follows. EMA(momentum=ρ)
    computes the same average with no kernel at all. Reference: TRACER, appendix "Mean-teacher within the WMA
    recursion".
    """

    momentum: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.momentum < 1:
            raise ValueError(f"Exponential needs a momentum inside (0, 1), not {self.momentum}")
        if -self.steps * math.log(self.momentum) > 700:
            raise ValueError(
                f"Exponential({self.momentum}) over {self.steps} steps spans more than a float holds; "
                f"EMA(momentum={self.momentum}) computes the same average"
            )

    def __call__(self, t: float) -> float:
        k = t * (self.steps + 1) - 0.5
        return 1.0 if k < 0.5 else (1 - self.momentum) * self.momentum**-k


KERNELS: dict[str, Callable[..., Kernel]] = {
    "beta": Beta,
    "uniform": Uniform,
    "early": Early,
    "late": Late,
    "triangular": Triangular,
    "exponential": Exponential,
}
