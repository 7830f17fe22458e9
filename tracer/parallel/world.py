"""`World`, the interface to devices and processes, implemented for a single process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from tracer.core.batch import Batch, Scene
from tracer.core.errors import UserError
from tracer.core.regularizers.base import Attached, Regularizer
from tracer.core.shadow import Shadow
from tracer.core.weights import Weights
from tracer.parallel import device as devices

T = TypeVar("T")


class Lost(UserError):
    """Another process is gone, so this one cannot continue."""


class World:
    """Single-process implementation; `Replicated` (DDP) and `Sharded` (FSDP2) override it."""

    rank = 0
    size = 1
    local_size = 1  # processes on this machine
    sharded = False  # whether each process holds a part of the weights only

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        self.device = devices.device(device)
        self.bf16 = devices.bf16(self.device, precision)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def describe(self) -> dict[str, Any]:
        """What may change the last bits of a result: device, CPU instructions, threads and number of processes."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type
        return {
            "device": name,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
            "processes": self.size,
        }

    # Training step

    def place(self, model: nn.Module) -> nn.Module:
        """Move a model to the device, in the memory format that is fast there."""
        placed = model.to(self.device)
        return devices.channels_last(placed) if self.device.type in ("cpu", "cuda") else placed

    def prepare(self, student: nn.Module, shadow: Shadow[Any] | None = None) -> None:
        """Wrap a student, and shard its teacher, once its trainable parameters are chosen."""

    def forward(self, function: Callable[..., T], model: nn.Module, *arguments: Any) -> T:
        """`function(model, …)` on full weights; the backward averages gradients over processes."""
        return function(model, *arguments)

    def to_device(self, batch: Batch) -> Batch:
        """Move a batch to the device."""
        return tree_map_only(Tensor, lambda tensor: tensor.to(self.device, non_blocking=True), batch)

    def autocast(self) -> AbstractContextManager[object]:
        """Mixed precision for the encoders; losses are computed outside, in fp32."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def gather(self, scene: Scene) -> Scene:
        """The scene of the global batch, in at least fp32, so that no loss term depends on processes."""
        half = (torch.bfloat16, torch.float16)
        return tree_map_only(Tensor, lambda each: each.float() if each.dtype in half else each, scene)

    def attach(
        self, regularizer: Regularizer, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]
    ) -> Attached:
        """Attach a regularizer to parameters, which may be sharded; the anchors are full tensors."""
        placed = {name: anchors[name].to(p.device, copy=True) for name, p in parameters.items()}
        return regularizer.attach(parameters, placed)

    # Full and sharded weights

    def reshard(self, model: nn.Module) -> None:
        """Free the full weights that a forward has gathered, before the shards are read or written."""

    def full_tensors(self, weights: Mapping[str, Tensor], *, everywhere: bool = False) -> Weights:
        """Full tensors, on the first process; the others get an empty dict unless `everywhere`."""
        del everywhere
        return dict(weights)

    def shard_like(self, weights: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> Weights:
        """Full tensors, sharded and laid out in memory like those of the same name in `like`."""
        return {name: devices.match_layout(tensor, like.get(name)) for name, tensor in weights.items()}

    # Division of work

    def share(self, rows: range) -> Sequence[int]:
        """The rows for this process; at least one, so that all processes take the same number of steps."""
        return rows

    def collect(self, own: Tensor, count: int) -> Tensor:
        """The results of all processes on their shares of `count` rows, in order, each row once."""
        return own[:count]

    # Coordination

    def all_or_none(self, action: Callable[[], T]) -> T:
        """The result of `action`, if it succeeds in every process; an error in one is raised in all."""
        return action()

    def on_first_process(self, action: Callable[[], object]) -> None:
        """Run `action` in the first process while the others wait; its error is raised in all."""
        self.all_or_none(action if self.first else lambda: None)

    def agree(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages of all processes, which must call this at the same step, in order of rank."""
        return [message]

    def guard(self) -> AbstractContextManager[object]:
        """A context in which communication errors due to a lost process are raised as `Lost`."""
        return nullcontext()

    def close(self) -> None:
        """Wait for the other processes and leave the group."""
