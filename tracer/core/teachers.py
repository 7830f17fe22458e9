"""Who teaches: a policy says how far the average moves toward the student, a shadow carries the average.

Policies are arithmetic on floats, so the theory integrates the very same objects that training uses. Time
runs on the grid t_k = (k + ½) / (T + 1), k = 0…T; the pretrained weights are iterate 0 and count as such.

    shadow = Shadow(model, WMA(Beta(0.5)), steps=1000)
    for batch in loader:
        teacher = shadow(batch)          # no gradient, fp32, eval mode
        ...; optimiser.step()
        shadow.follow(model)             # once after every optimiser step

The recursion is CLIPood's Beta moving average (arXiv 2302.00864); TRACER makes it a teacher.
"""

from __future__ import annotations

import copy
import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.core.kernels import Beta, Kernel
from tracer.core.weights import check_fit


class Mass(NamedTuple):
    """Kernel mass already in the average, and mass that waits for the next move."""

    held: float = 0.0
    pending: float = 0.0


@runtime_checkable
class Teacher(Protocol):
    """A policy: `tick` passes one step of time, `move` says how far to go to the student (0 stay, 1 copy)."""

    @property
    def every(self) -> int: ...
    def start(self, steps: int) -> Mass: ...
    def tick(self, mass: Mass, step: int, steps: int) -> Mass: ...
    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]: ...


@dataclass(frozen=True)
class Frozen:
    """Never moves: the pretrained model teaches for ever (static self-distillation)."""

    every: int = field(default=1, init=False)

    def start(self, steps: int) -> Mass:
        return Mass()

    def tick(self, mass: Mass, step: int, steps: int) -> Mass:
        return mass

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        return 0.0, mass


@dataclass(frozen=True)
class EMA:
    """ψ ← m ψ + (1−m) θ.

    Give either `momentum` m for each move, or `horizon` h, the memory as a share of training:
    m = exp(−every/(hT)). `ramp` raises the momentum linearly from `ramp_from` over that share of training
    (CaRot: from 0.05 over 20 %).
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
            raise ValueError(f"EMA's ramp needs shares in [0, 1], not {self.ramp_from} over {self.ramp}")
        _check_every(self.every)

    def start(self, steps: int) -> Mass:
        return Mass()

    def tick(self, mass: Mass, step: int, steps: int) -> Mass:
        return mass

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        full = self._full(steps)
        climb = self.ramp * steps  # in steps
        risen = full if step >= climb else self.ramp_from + (full - self.ramp_from) * step / climb
        return 1 - risen, mass

    def _full(self, steps: int) -> float:
        if self.momentum is not None:
            return self.momentum
        assert self.horizon is not None  # one of the two is given
        return math.exp(-self.every / (self.horizon * steps))


@dataclass(frozen=True)
class WMA:
    """ψ_t = Σ κ(t_k) θ_k / Σ κ(t_k): the kernel-weighted average of the whole path, θ₀ included.

    The clock ticks at every step, so a sparse move (`every` > 1) carries the kernel mass of its whole
    interval and keeps the kernel's shape. clock="updates" counts moves but divides by steps, as the released
    code does; it is there to reproduce published curves and silently drags the average toward θ₀.
    """

    kernel: Kernel = field(default_factory=Beta)
    every: int = 1
    clock: Literal["progress", "updates"] = "progress"

    def __post_init__(self) -> None:
        _check_every(self.every)
        if self.clock not in ("progress", "updates"):
            raise ValueError(f"unknown clock {self.clock!r}: choose progress or updates")

    def density(self, tick: int, steps: int) -> float:
        """κ at a tick of the clock, 0 to `steps`."""
        if tick > steps:
            raise ValueError(f"this average was laid out for {steps} steps and is asked to follow one more")
        value = self.kernel((tick + 0.5) / (steps + 1))
        if not 0 <= value < math.inf:
            raise ValueError(f"{self.kernel!r} is {value} at tick {tick}: no kernel is negative or infinite")
        return value

    def start(self, steps: int) -> Mass:
        return Mass(held=self.density(0, steps))

    def tick(self, mass: Mass, step: int, steps: int) -> Mass:
        if self.clock == "updates":
            return mass
        return mass._replace(pending=mass.pending + self.density(step, steps))

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        pending = mass.pending if self.clock == "progress" else self.density(step // self.every, steps)
        held = mass.held + pending
        return (pending / held if held > 0 else 0.0), Mass(held=held)


def mean_age(policy: Teacher, step: int, steps: int) -> float:
    """How many steps the iterates in the average lie back, by their weights: a ← (1−ω)(a + 1), a₀ = 0."""
    age, mass = 0.0, policy.start(steps)
    for now in range(1, step + 1):
        age, mass = age + 1, policy.tick(mass, now, steps)
        if now % policy.every == 0:
            far, mass = policy.move(mass, now, steps)
            age *= 1 - far
    return age


def _check_every(every: int) -> None:
    if every < 1:
        raise ValueError(f"a teacher moves every 1 or more steps, not every {every}")


class Shadow:
    """An average of a model's path: an eval-mode copy without gradients that follows the model by a policy.

    The copy is kept in at least fp32 whatever the model trains in: mid-run steps of 2e-5 vanish in bf16. It
    works with any `nn.Module`, in anybody's loop. Buffers are copied from the model (`buffers="average"` for
    floating ones, such as BatchNorm statistics), and only when the average moves.
    """

    def __init__(
        self,
        model: nn.Module,
        policy: Teacher,
        *,
        steps: int,
        buffers: Literal["copy", "average"] = "copy",
    ) -> None:
        if steps < 1:
            raise ValueError(f"a shadow follows a run of 1 or more steps, not {steps}")
        if buffers not in ("copy", "average"):
            raise ValueError(f"unknown treatment of buffers {buffers!r}: choose copy or average")
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        for tensor in [*self.model.parameters(), *self.model.buffers()]:
            if tensor.is_floating_point():
                tensor.data = tensor.data.to(torch.promote_types(tensor.dtype, torch.float32))
        self.policy = policy
        self.steps = steps
        self.step = 0
        self.age = 0.0  # as `mean_age` has it
        self.mass = policy.start(steps)
        self.buffers = buffers

    @torch.no_grad()  # not inference_mode: whatever a model returns or caches may meet a graph later
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the teacher makes of an input; the result is constant to autograd."""
        return self.model(*args, **kwargs)

    @torch.no_grad()
    def follow(self, model: nn.Module) -> float:
        """Pass one step of time and, when it is due, move toward `model`. Returns how far it moved."""
        self.step += 1
        self.age += 1
        self.mass = self.policy.tick(self.mass, self.step, self.steps)
        if self.step % self.policy.every:
            return 0.0
        far, self.mass = self.policy.move(self.mass, self.step, self.steps)
        self.age *= 1 - far
        if far > 0:
            self._move(model, far)
        return far

    def _move(self, model: nn.Module, far: float) -> None:
        averages, currents = [], []
        averaged = (True, self.buffers == "average")
        for average, mine, theirs in zip(averaged, held(self.model), held(model), strict=True):
            for old, new in zip(mine, theirs, strict=True):
                if average and (old.is_floating_point() or old.is_complex()):
                    averages.append(old)
                    currents.append(new.to(old.dtype))
                else:  # there is no average of counters and masks
                    old.copy_(new)
        if averages:
            torch._foreach_lerp_(averages, currents, far)  # one fused pass over the weights

    def state_dict(self) -> dict[str, Any]:
        """Weights, counters and the policy's name: all that resuming needs."""
        return {
            "model": self.model.state_dict(),
            "counters": {"step": self.step, "steps": self.steps, **self.mass._asdict()},
            "policy": _name(self.policy),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`; a state of another model, policy or length is refused."""
        if state["policy"] != (policy := _name(self.policy)):
            raise UserError(f"this teacher state belongs to {state['policy']}, the run has {policy}")
        counters = state["counters"]
        if counters["steps"] != self.steps:
            raise UserError(f"this teacher state is of a run of {counters['steps']} steps, not {self.steps}")
        check_fit(state["model"], self.model.state_dict(), what="the teacher's weights", owner="the model")
        self.model.load_state_dict(state["model"])
        self.step = counters["step"]
        self.age = mean_age(self.policy, self.step, self.steps)
        self.mass = Mass(counters["held"], counters["pending"])


def held(model: nn.Module) -> tuple[dict[Tensor, None], dict[Tensor, None]]:
    """Parameters and buffers, each once, by one walk: `parameters()` and `buffers()` make every name on theirs."""
    parameters: dict[Tensor, None] = {}
    buffers: dict[Tensor, None] = {}
    for module in model.modules():
        parameters.update((tensor, None) for tensor in module._parameters.values() if tensor is not None)
        buffers.update((tensor, None) for tensor in module._buffers.values() if tensor is not None)
    return parameters, buffers


def _name(policy: Teacher) -> str:
    """How a policy prints, without memory addresses: a kernel may be a function, and they change."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(policy))
