"""DDP: every process holds all weights and a part of each batch; gradients are averaged in the backward pass."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tracer.core.shadow import Shadow
from tracer.core.weights import Weights
from tracer.parallel.group import FunctionOf, Group

T = TypeVar("T")


class Replicated(Group):
    """Several processes with equal weights."""

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        super().__init__(device, precision)
        self._wrapped: WeakKeyDictionary[nn.Module, DistributedDataParallel] = WeakKeyDictionary()

    def prepare(self, student: nn.Module, shadow: Shadow[Any] | None = None) -> None:
        del shadow  # equal in all processes: the same average of equal students
        self._wrapped[student] = DistributedDataParallel(
            FunctionOf(student),
            static_graph=True,  # every step of a stage uses the same parameters
            gradient_as_bucket_view=True,
        )

    def forward(self, function: Callable[..., T], model: nn.Module, *arguments: Any) -> T:
        wrapped = self._wrapped.get(model) if torch.is_grad_enabled() else None
        return function(model, *arguments) if wrapped is None else wrapped(function, *arguments)

    def full_tensors(self, weights: Mapping[str, Tensor], *, everywhere: bool = False) -> Weights:
        return dict(weights) if self.first or everywhere else {}

    def close(self) -> None:
        # DDP must go before the group. Otherwise its reducer ends the group while it holds the GIL, and waits for a
        # thread of the group that may be waiting for the GIL. DDP refers to itself, so only a collection frees it.
        self._wrapped.clear()
        gc.collect()
        super().close()
