"""Teachers: a policy computes the averaging weight of each step; `tracer.core.shadow` holds the averaged model.

A policy (`Frozen`, `EMA`, `WMA`) only does arithmetic on floats, so the theory uses the same objects as training.
Step k = 0…T has the time t_k = (k + ½) / (T + 1); the pretrained weights are iterate 0 and enter the average.
The recursion is CLIPood's Beta moving average (arXiv 2302.00864); TRACER distils from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

from tracer.core.errors import UserError
from tracer.core.kernels import Beta, Kernel, log_density

Clock = Literal["progress", "updates"]
Buffers = Literal["copy", "average", "keep"]


class Mass(NamedTuple):
    """The state of a policy: log of the kernel mass in the average, and log of the mass since the last move.

    Logarithms, because the kernel of a large β spans more than the range of a float.
    """

    held: float = -math.inf
    pending: float = -math.inf


@runtime_checkable
class Teacher(Protocol):
    """An averaging policy: when the teacher ψ moves toward the student θ, and by which ω in ψ ← ψ + ω (θ − ψ).

    `start` gives the state before training and `tick` updates it after each of the `steps` optimiser steps. After
    the steps that are `due` (one in `every`, and the last) `move` gives ω (0 keeps the teacher, 1 copies the
    student) and the state after the move. A subclass has no state unless it says so.
    """

    @property
    def every(self) -> int: ...

    def start(self, steps: int) -> Mass:
        return Mass()

    def tick(self, mass: Mass, step: int, steps: int) -> Mass:
        return mass

    def due(self, step: int, steps: int) -> bool: ...
    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]: ...


def advance(policy: Teacher, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
    """ω after step `step`, counted from 1, 0 where the teacher does not move; and the state of the policy."""
    mass = policy.tick(mass, step, steps)
    return policy.move(mass, step, steps) if policy.due(step, steps) else (0.0, mass)


@dataclass(frozen=True)
class Frozen(Teacher):
    """ψ = θ₀: the teacher stays the model at the start of its stage (static self-distillation)."""

    every: int = field(default=1, init=False)

    def due(self, step: int, steps: int) -> bool:
        return False

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        return 0.0, mass


@dataclass(frozen=True)
class EMA(Teacher):
    """ψ ← m ψ + (1−m) θ.

    Set either `momentum` m of each move, or `horizon` h, the averaging time as a fraction of training:
    m = exp(−every/(hT)). During the first fraction `ramp` of training the momentum rises linearly from
    `ramp_from` (CaRot: from 0.05 over 20 %). A last interval of r < `every` steps has the momentum m^(r/every).
    """

    momentum: float | None = None
    horizon: float | None = None
    every: int = 1
    ramp: float = 0.0
    ramp_from: float = 0.05

    def __post_init__(self) -> None:
        if (self.momentum is None) == (self.horizon is None):
            raise ValueError("EMA takes either momentum or horizon")
        if self.momentum is not None and not 0 <= self.momentum <= 1:
            raise ValueError(f"EMA needs a momentum in [0, 1], not {self.momentum}")
        if self.horizon is not None and self.horizon <= 0:
            raise ValueError(f"EMA needs a positive horizon, not {self.horizon}")
        if not (0 <= self.ramp <= 1 and 0 <= self.ramp_from <= 1):
            raise ValueError(f"EMA's ramp needs fractions in [0, 1], not {self.ramp_from} over {self.ramp}")
        _check_every(self.every)

    def due(self, step: int, steps: int) -> bool:
        return step % self.every == 0 or step == steps

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        final = self._final_momentum(steps)
        ramp = self.ramp * steps  # in steps
        momentum = final if step >= ramp else self.ramp_from + (final - self.ramp_from) * step / ramp
        if rest := step % self.every:
            momentum **= rest / self.every
        return 1 - momentum, mass

    def _final_momentum(self, steps: int) -> float:
        if self.momentum is not None:
            return self.momentum
        assert self.horizon is not None  # __post_init__ checks that one of the two is set
        return math.exp(-self.every / (self.horizon * steps))


@dataclass(frozen=True)
class WMA(Teacher):
    """ψ_t = Σ κ(t_k) θ_k / Σ κ(t_k): the kernel-weighted average of all iterates, θ₀ included.

    With `every` > 1 each move has the kernel mass of all steps since the last one, which keeps the shape of the
    kernel. clock="updates" is the released code: it moves after steps 1, N + 1, 2N + 1, … and after the last one,
    and evaluates the kernel at (number of moves) / (number of steps). Use it only to reproduce published curves,
    because it biases the average toward θ₀ if `every` > 1.
    """

    kernel: Kernel = field(default_factory=Beta)
    every: int = 1
    clock: Clock = "progress"

    def __post_init__(self) -> None:
        _check_every(self.every)
        if self.clock not in get_args(Clock):
            raise ValueError(f"unknown clock {self.clock!r}: choose progress or updates")

    @property
    def counts_moves(self) -> bool:
        """Whether the clock differs from training progress."""
        return self.clock == "updates" and self.every > 1

    def log_density(self, tick: int, steps: int) -> float:
        """log κ(t_k) at k = `tick`, 0 to `steps`. Raises ValueError beyond, and where κ is no density."""
        if tick > steps:
            raise ValueError(f"this average was laid out for {steps} steps and cannot follow one more")
        return log_density(self.kernel, (tick + 0.5) / (steps + 1))

    def start(self, steps: int) -> Mass:
        return Mass(held=self.log_density(0, steps))

    def tick(self, mass: Mass, step: int, steps: int) -> Mass:
        if self.clock == "updates":
            return mass
        return mass._replace(pending=_log_add(mass.pending, self.log_density(step, steps)))

    def due(self, step: int, steps: int) -> bool:
        return (step - (self.clock == "updates")) % self.every == 0 or step == steps

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        pending = mass.pending
        if self.clock == "updates":
            moves = 1 + math.ceil((step - 1) / self.every)
            pending = self.log_density(moves, steps)
        held = _log_add(mass.held, pending)
        return (math.exp(pending - held) if held > -math.inf else 0.0), Mass(held=held)


def check_interval(policy: Teacher, steps: int) -> None:
    """Raise UserError if a teacher's interval is longer than training: it would stay at its start until the end."""
    if policy.every > steps:
        raise UserError(
            f"the teacher moves every {policy.every} steps and training has {steps}: "
            f"use --every {steps} or less, or a frozen teacher (static_sd)"
        )


def replay(policy: Teacher, step: int, steps: int) -> tuple[float, Mass]:
    """The mean age, a ← (1−ω)(a + 1) from a₀ = 0, and the state of the policy after step `step`."""
    age, mass = 0.0, policy.start(steps)
    for k in range(1, step + 1):
        weight, mass = advance(policy, mass, k, steps)
        age = (age + 1) * (1 - weight)
    return age, mass


def _log_add(a: float, b: float) -> float:
    """log(eᵃ + eᵇ)."""
    low, high = sorted((a, b))
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _check_every(every: int) -> None:
    if every < 1:
        raise ValueError(f"a teacher moves every 1 or more steps, not every {every}")
