"""The averaged model: a copy of a student that follows it as a teacher policy says.

shadow = Shadow(model, WMA(Beta(0.5)), steps=1000)
for batch in loader:
    teacher = shadow(batch)          # no gradients, fp32, eval mode
    ...; optimiser.step()
    shadow.follow(model)             # once after every optimiser step
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, get_args

import torch
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.core.teachers import WMA, Buffers, Teacher, advance, check_interval, replay
from tracer.core.weights import Weights, check_fit

Model = TypeVar("Model", bound=nn.Module)

REMAINDER = "/remainder"  # suffix of the names of remainders in a state
SMALL_MOVE = 2.0**-8  # a larger one of a change of 1e-3 beside a weight of 1 is at least 30 roundings of fp32


class Shadow(Generic[Model]):
    """The teacher model: a copy of a model, in eval mode and without gradients, averaged over training by a policy.

    It works with any `nn.Module` in any training loop of `steps` optimiser steps. The copy is at least fp32
    whatever the model's dtype, because averaging weights of 2e-5 vanish in bf16. When the average moves, `buffers`
    such as BatchNorm statistics are copied from the model ("copy"), averaged if they are floats ("average"), or left
    at their initial values ("keep"). In long runs vectors and scalars are averaged by compensated summation: beside the
    weight of a norm, which is about 1, most moves are smaller than half a unit in the last place of fp32.

    Parameters that are frozen when the shadow is made are not copied: the average of a constant is that constant, so
    shadow and model hold the same tensors (`shared` names them). They have to stay frozen.
    """

    def __init__(
        self,
        model: Model,
        policy: Teacher,
        *,
        steps: int,
        buffers: Buffers = "copy",
    ) -> None:
        if steps < 1:
            raise ValueError(f"a shadow needs a run of 1 or more steps, not {steps}")
        if buffers not in get_args(Buffers):
            raise ValueError(f"unknown treatment of buffers {buffers!r}: choose copy, average or keep")
        check_interval(policy, steps)
        frozen = {id(p): p for p in model.parameters() if not p.requires_grad and _shadow_dtype(p) == p.dtype}
        named = model.named_parameters(remove_duplicate=False)
        self.shared = frozenset(name for name, parameter in named if id(parameter) in frozen)
        self.model = copy.deepcopy(model, dict(frozen)).eval().requires_grad_(False)
        for tensor in [*self.model.parameters(), *self.model.buffers()]:
            if tensor.dtype != _shadow_dtype(tensor):
                tensor.data = tensor.data.to(_shadow_dtype(tensor))
        self.policy = policy
        self.steps = steps
        self.step = 0
        self.age = 0.0  # mean age, in steps, of the iterates in the average
        self.mass = policy.start(steps)
        self.buffers: Buffers = buffers
        self.remainders: Weights = {}  # what fp32 has rounded off the averages of vectors and scalars

    @torch.no_grad()  # not inference_mode: its tensors, returned or cached, cannot enter an autograd graph later
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The forward pass of the averaged model, without gradients."""
        return self.model(*args, **kwargs)

    @torch.no_grad()
    def follow(self, model: nn.Module) -> float:
        """Update the average; call it once after every optimiser step. Returns ω, 0 where the average did not move."""
        self.step += 1
        weight, self.mass = advance(self.policy, self.mass, self.step, self.steps)
        self.age = (self.age + 1) * (1 - weight)
        if weight > 0:
            self._move(model, weight)
        return weight

    def _move(self, model: nn.Module, weight: float) -> None:
        averages, currents, vectors = [], [], dict[str, tuple[Tensor, Tensor]]()
        for name, old, new, treatment in _pairs(self.model, model, self.buffers):
            if name in self.shared:
                if new.requires_grad:
                    raise ValueError(f"{name} was frozen when its shadow was made and is trained now")
            elif treatment == "average" and (old.is_floating_point() or old.is_complex()):
                if old.ndim < 2 and weight < SMALL_MOVE:
                    vectors[name] = old, new.to(old.dtype)
                else:
                    averages.append(old)
                    currents.append(new.to(old.dtype))
            elif treatment != "keep":  # integer counters and masks cannot be averaged
                old.copy_(new)
        if averages:
            torch._foreach_lerp_(averages, currents, weight)  # one fused pass over the weights
        self.remainders = _compensated_move(vectors, self.remainders, weight)

    def state_dict(self) -> dict[str, Any]:
        """Weights that are not shared with the model and their remainders, counters and the policy's name."""
        remainders = {name + REMAINDER: tensor for name, tensor in self.remainders.items()}
        return {
            "model": self._own(self.model.state_dict()) | remainders,
            "counters": {"step": self.step, "steps": self.steps},  # the policy's state follows from them
            "policy": _name(self.policy),
        }

    def _own(self, weights: Weights) -> Weights:
        return {name: tensor for name, tensor in weights.items() if name not in self.shared}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`. Raises UserError if it is of another model, policy or number of steps."""
        if state["policy"] != (policy := _name(self.policy)):
            raise UserError(f"this teacher state belongs to {state['policy']}, the run has {policy}")
        counters = state["counters"]
        if counters["steps"] != self.steps:
            raise UserError(f"this teacher state is of a run of {counters['steps']} steps, not {self.steps}")
        if "held" in counters and isinstance(self.policy, WMA) and self.policy.counts_moves:
            raise UserError(
                "this teacher state is of version 0.1, whose clock updates moved at other steps: train again"
            )
        own = self._own(self.model.state_dict())
        weights = self._own(state["model"])  # version 0.1 wrote the shared ones too
        remainders = {
            name.removesuffix(REMAINDER): weights.pop(name) for name in [*weights] if name.endswith(REMAINDER)
        }
        check_fit(weights, own, what="the teacher's weights", owner="the model")
        like = {name: own[name] for name in remainders if name in own}
        check_fit(remainders, like, what="the teacher's remainders", owner="the model")
        self.model.load_state_dict(weights, strict=False)
        self.remainders = {name: tensor.to(own[name], copy=True) for name, tensor in remainders.items()}
        self.step = counters["step"]
        self.age, self.mass = replay(self.policy, self.step, self.steps)


def _compensated_move(pairs: dict[str, tuple[Tensor, Tensor]], remainders: Weights, weight: float) -> Weights:
    """ψ ← ψ + ω (θ − ψ) of the pairs (ψ, θ), where ψ + remainder is the average; returns the new remainders."""
    if not pairs:
        return {}
    averages, currents = (list(tensors) for tensors in zip(*pairs.values(), strict=True))
    changes = [remainders.get(name, torch.zeros_like(old)) for name, (old, _) in pairs.items()]
    torch._foreach_lerp_(changes, torch._foreach_sub(currents, averages), weight)
    before = [average.clone() for average in averages]
    torch._foreach_add_(averages, changes)
    torch._foreach_sub_(changes, torch._foreach_sub(averages, before))
    return dict(zip(pairs, changes, strict=True))


def _shadow_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype of a tensor in a shadow: at least fp32 for real numbers."""
    return torch.promote_types(tensor.dtype, torch.float32) if tensor.is_floating_point() else tensor.dtype


def _pairs(
    shadow: nn.Module, model: nn.Module, buffers: Buffers
) -> Iterator[tuple[str, Tensor, Tensor, Buffers]]:
    """Each distinct parameter and buffer of a shadow by name, that of the model, and how the first follows."""
    seen = set[int]()
    for (prefix, one), other in zip(shadow.named_modules(), model.modules(), strict=True):
        tensors: tuple[tuple[dict[str, Any], dict[str, Any], Buffers], ...] = (
            (one._parameters, other._parameters, "average"),
            (one._buffers, other._buffers, buffers),
        )
        for own, current, treatment in tensors:
            for name, old in own.items():
                new = current[name]
                if old is not None and new is not None and id(old) not in seen:
                    seen.add(id(old))
                    yield (f"{prefix}.{name}" if prefix else name), old, new, treatment


def _name(policy: Teacher) -> str:
    """The repr of a policy without memory addresses: a kernel may be a function, whose address changes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(policy))
