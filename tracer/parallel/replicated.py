"""DDP: every process holds all weights and sees a part of each batch; gradients are averaged on the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tracer.core.weights import Weights
from tracer.parallel.group import Group, Running

T = TypeVar("T")


class Replicated(Group):
    """Several processes with equal weights."""

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        super().__init__(device, precision)
        self._engines: WeakKeyDictionary[nn.Module, DistributedDataParallel] = WeakKeyDictionary()

    def prepare(self, student: nn.Module, teacher: nn.Module | None = None) -> None:
        del teacher  # it follows equal students by equal steps, and stays equal without a word
        self._engines[student] = DistributedDataParallel(
            Running(student),
            static_graph=True,  # a stage reaches the same weights at every step; which those are is found out once
            gradient_as_bucket_view=True,
        )

    def forward(self, function: Callable[..., T], model: nn.Module, *arguments: Any) -> T:
        engine = self._engines.get(model) if torch.is_grad_enabled() else None
        return function(model, *arguments) if engine is None else engine(function, *arguments)

    def whole(self, weights: Mapping[str, Tensor], *, everywhere: bool = False) -> Weights:
        return dict(weights) if self.first or everywhere else {}
