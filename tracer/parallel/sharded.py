"""FSDP2: every process holds a shard of the weights, gradients, Adam states and teacher."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication

from tracer.core.regularizers.base import Attached, Regularizer
from tracer.core.shadow import Shadow
from tracer.core.weights import Weights
from tracer.parallel.group import FunctionOf, Group

T = TypeVar("T")


class Sharded(Group):
    """Several processes that share one model, gathered one block at a time.

    With several machines, weights are sharded inside each machine and replicated across them (hybrid sharding), so
    that only gradients travel between machines.
    """

    sharded = True

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        super().__init__(device, precision)
        self.mesh = _mesh(self.device.type, self.size, self.local_size)
        self._wrapped: WeakKeyDictionary[nn.Module, FSDPModule] = WeakKeyDictionary()
        self._scalars: set[str] = set()
        # The squeezed temperature is a view; nothing writes into the outputs of a forward.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")

    def place(self, model: nn.Module) -> nn.Module:
        return model.to(self.device)  # not channels-last: FSDP shards contiguous weights only

    def prepare(self, student: nn.Module, shadow: Shadow[Any] | None = None) -> None:
        self._scalars |= {name for name, p in student.named_parameters() if p.ndim == 0}
        self._wrapped[student] = _shard(student, FunctionOf(student), self.mesh)
        if shadow is not None:  # called directly, without gradients
            self._wrapped[shadow.model] = _shard(shadow.model, shadow.model, self.mesh)
            shards = student.state_dict()
            shared = {name: shards[name] for name in shadow.shared}
            shadow.model.load_state_dict(shared, strict=False, assign=True)

    def forward(self, function: Callable[..., T], model: nn.Module, *arguments: Any) -> T:
        wrapped: Any = self._wrapped.get(model)
        return function(model, *arguments) if wrapped is None else wrapped(function, *arguments)

    def attach(
        self, regularizer: Regularizer, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]
    ) -> Attached:
        return _ShardedRegularizer(
            super().attach(regularizer, parameters, self.shard_like(anchors, parameters)), parameters, self
        )

    def reshard(self, model: nn.Module) -> None:
        if model in self._wrapped:
            self._wrapped[model].reshard()  # a root module stays gathered after a forward without a backward

    def full_tensors(self, weights: Mapping[str, Tensor], *, everywhere: bool = False) -> Weights:
        gathered: Weights = {}
        for name, tensor in weights.items():  # one at a time: a device holds one full tensor at most
            full = tensor.detach()
            full = full.full_tensor() if isinstance(full, DTensor) else full
            if self.first or everywhere:
                gathered[name] = full.reshape(()).cpu() if self._scalar(name) else full.cpu()
        return gathered

    def shard_like(self, weights: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> Weights:
        return {name: _shard_tensor(tensor, like.get(name)) for name, tensor in weights.items()}

    def _scalar(self, name: str) -> bool:
        """Whether a tensor is a scalar that `_shard` has given an axis; "NAME/…" belongs to parameter NAME."""
        return name in self._scalars or name.rpartition("/")[0] in self._scalars


class _ShardedRegularizer:
    """A regularizer on shards: norms and products are those of full tensors, its own scalars are replicated."""

    def __init__(self, attached: Attached, parameters: Mapping[str, Tensor], world: Sharded) -> None:
        self.attached, self.parameters, self.world = attached, parameters, world

    def pull(self) -> None:
        with implicit_replication():
            self.attached.pull()

    def clamp(self, lr: float) -> None:
        with implicit_replication():
            self.attached.clamp(lr)

    def state_dict(self) -> dict[str, Any]:
        return self.attached.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        like = {
            key: self.parameters[name] for key in state if (name := key.partition("/")[2]) in self.parameters
        }
        self.attached.load_state_dict(self.world.shard_like(state, like))


def blocks(model: nn.Module) -> list[nn.Module]:
    """The repeated modules of a model, outermost first: the units that FSDP gathers and frees one after another."""
    repeated: list[nn.Module] = []
    for child in model.children():
        parts = list(child.children())
        stacked = isinstance(child, nn.ModuleList | nn.Sequential) and len(parts) > 1
        if stacked and len({type(part) for part in parts}) == 1 and any(True for _ in parts[0].parameters()):
            repeated += parts
        else:
            repeated += blocks(child)
    return repeated


def _shard(model: nn.Module, root: nn.Module, mesh: DeviceMesh) -> FSDPModule:
    for parameter in model.parameters():
        if parameter.ndim == 0:  # FSDP shards along the first axis
            parameter.data = parameter.data.reshape(1)
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    # The root stays gathered until its backward: losses use its projections, head and temperature.
    return fully_shard(root, mesh=mesh, reshard_after_forward=False)


def _mesh(kind: str, size: int, local_size: int) -> DeviceMesh:
    if local_size in (1, size) or size % local_size:
        return init_device_mesh(kind, (size,))
    return init_device_mesh(kind, (size // local_size, local_size), mesh_dim_names=("machine", "process"))


def _shard_tensor(tensor: Tensor, like: Tensor | None) -> Tensor:
    if not isinstance(like, DTensor) or isinstance(tensor, DTensor):
        return tensor
    placed = tensor.to(like.device, like.dtype).reshape(like.shape)
    # Every process has the full tensor and keeps its own shard: nothing is sent.
    return distribute_tensor(placed, like.device_mesh, like.placements, src_data_rank=None)
