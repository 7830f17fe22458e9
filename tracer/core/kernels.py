"""Kernels: how much the weights at each moment of training count in the teacher's average.

A kernel is a density over normalised training time in (0, 1); any callable from float to float will do. The
average depends only on ratios, but the kernels here integrate to 1, so that their values can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tracer.core.errors import UserError, unknown

Kernel = Callable[[float], float]


@runtime_checkable
class LogKernel(Protocol):
    """A kernel that also has log κ(t), which stays finite where κ(t) is too small for a float."""

    def __call__(self, t: float) -> float: ...
    def log(self, t: float) -> float: ...


def log_density(kernel: Kernel, t: float) -> float:
    """log κ(t), −∞ where κ(t) = 0. Raises ValueError if κ(t) is negative, NaN or infinite."""
    if isinstance(kernel, LogKernel):
        value = kernel.log(t)
        valid = value < math.inf
    else:
        density = kernel(t)
        valid = 0 <= density < math.inf
        value = math.log(density) if valid and density > 0 else -math.inf
    if not valid:
        raise ValueError(f"{kernel!r} is {kernel(t)} at time {t:.6g}: no kernel is negative or infinite")
    return value


@dataclass(frozen=True)
class Beta:
    """t^(a−1) (1−t)^(b−1) / B(a, b). Beta(½), TRACER's choice, weighs both ends of training most (arcsine law)."""

    a: float = 0.5
    b: float | None = None

    def __post_init__(self) -> None:
        if self.a <= 0 or self.right <= 0:
            raise ValueError(f"Beta needs positive shapes, not a={self.a}, b={self.right}")

    @property
    def right(self) -> float:
        """b, or a if b is not set."""
        return self.a if self.b is None else self.b

    def __call__(self, t: float) -> float:
        return math.exp(self.log(t))

    def log(self, t: float) -> float:
        """log κ(t) for 0 < t < 1."""
        a, b = self.a, self.right
        log_norm = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        return (a - 1) * math.log(t) + (b - 1) * math.log1p(-t) - log_norm


@dataclass(frozen=True)
class Uniform:
    """Every iterate counts the same: the running mean (Polyak averaging, SWA)."""

    def __call__(self, t: float) -> float:
        return 1.0


@dataclass(frozen=True)
class _Power:
    power: float = 1.0

    def __post_init__(self) -> None:
        if self.power <= -1:
            raise ValueError(f"a power kernel needs a power above −1 to have an integral, not {self.power}")


class Early(_Power):
    """(p+1)(1−t)^p: the start of training weighs most."""

    def __call__(self, t: float) -> float:
        return (self.power + 1) * (1 - t) ** self.power

    def log(self, t: float) -> float:
        return math.log(self.power + 1) + self.power * math.log1p(-t)


class Late(_Power):
    """(p+1) t^p: the end of training weighs most."""

    def __call__(self, t: float) -> float:
        return (self.power + 1) * t**self.power

    def log(self, t: float) -> float:
        return math.log(self.power + 1) + self.power * math.log(t)


@dataclass(frozen=True)
class Triangular:
    """Rises linearly to `peak`, then falls: the middle of training weighs most."""

    peak: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.peak < 1:
            raise ValueError(f"Triangular needs its peak inside (0, 1), not {self.peak}")

    def __call__(self, t: float) -> float:
        return 2 * t / self.peak if t <= self.peak else 2 * (1 - t) / (1 - self.peak)


@dataclass(frozen=True)
class Exponential:
    """The kernel that makes a weighted average equal an EMA: α₀ = 1, α_k = (1−ρ) ρ^(−k).

    It depends on the number of steps, which must be that of the `Shadow`. EMA(momentum=ρ) computes the same
    average without a kernel. Reference: TRACER, appendix "Mean-teacher within the WMA recursion".
    """

    momentum: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.momentum < 1:
            raise ValueError(f"Exponential needs a momentum inside (0, 1), not {self.momentum}")
        if -self.steps * math.log(self.momentum) > 700:
            raise ValueError(
                f"Exponential({self.momentum}) over {self.steps} steps exceeds the range of a float; "
                f"EMA(momentum={self.momentum}) computes the same average"
            )

    def __call__(self, t: float) -> float:
        k = t * (self.steps + 1) - 0.5
        return 1.0 if k < 0.5 else (1 - self.momentum) * self.momentum**-k


KERNELS: dict[str, Any] = {
    "beta": Beta,
    "uniform": Uniform,
    "early": Early,
    "late": Late,
    "triangular": Triangular,
    "exponential": Exponential,
}


def family(spelling: str, *, beta: float = 0.5) -> Callable[[int], Kernel]:
    """Parse FAMILY or FAMILY:SHAPE, e.g. uniform or late:2, into a function from the number of steps to a kernel.

    `beta` is the shape of the family beta. The shape of exponential is the horizon h of the equivalent EMA, as a
    fraction of training: ρ = exp(−1/(hT)); by default ½, the mean age of TRACER's teacher.
    """
    name, colon, shape_text = spelling.partition(":")
    if name not in KERNELS:
        raise unknown("kernel", name, KERNELS)
    if colon and name in ("beta", "uniform"):
        raise UserError(
            f"kernel {spelling}: {'its shape is --beta' if name == 'beta' else 'it has no shape'}"
        )
    if name != "beta" and beta != 0.5:
        raise UserError(f"beta {beta:g} is the shape of the kernel beta, and the kernel is {name}")
    try:
        shape = [beta] if name == "beta" else [float(shape_text)] if colon else []
        if name == "exponential":
            return _exponential(*shape)
        kernel = KERNELS[name](*shape)
    except ValueError as error:
        raise UserError(f"kernel {spelling}: {error}") from None
    return lambda steps: kernel


def _exponential(horizon: float = 0.5) -> Callable[[int], Kernel]:
    if not horizon >= 0.002:
        raise ValueError(f"the horizon of an EMA is a fraction of training, 0.002 or more, not {horizon:g}")
    return lambda steps: Exponential(math.exp(-1 / (horizon * steps)), steps)
