"""FSDP2: every process holds a part of the weights, of their gradients, of Adam's state and of the teacher."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication

from tracer.core.regularizers.base import Attached, Regularizer
from tracer.core.weights import Weights
from tracer.parallel.group import Group, Running

T = TypeVar("T")


class Sharded(Group):
    """Several processes with one model between them, gathered a block at a time.

    On several machines each holds the whole model in parts, so that weights travel inside machines and only
    gradients between them.
    """

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        super().__init__(device, precision)
        self.mesh = _mesh(self.device.type, self.size, self.neighbours)
        self._engines: WeakKeyDictionary[nn.Module, FSDPModule] = WeakKeyDictionary()
        self._scalars: set[str] = set()
        # A squeezed temperature is a view, and nothing writes into what a forward returns.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")

    def place(self, model: nn.Module) -> nn.Module:
        return model.to(self.device)  # FSDP cuts contiguous weights only

    def prepare(self, student: nn.Module, teacher: nn.Module | None = None) -> None:
        self._scalars |= {name for name, p in student.named_parameters() if p.ndim == 0}
        self._engines[student] = _cut(student, Running(student), self.mesh)
        if teacher is not None:  # run by itself, without a gradient
            self._engines[teacher] = _cut(teacher, teacher, self.mesh)

    def forward(self, function: Callable[..., T], model: nn.Module, *arguments: Any) -> T:
        engine: Any = self._engines.get(model)
        return function(model, *arguments) if engine is None else engine(function, *arguments)

    def clip(self, parameters: Iterable[Tensor], max_norm: float) -> Tensor:
        return _full(super().clip(parameters, max_norm))

    def attach(
        self, regularizer: Regularizer, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]
    ) -> Attached:
        return _Held(
            super().attach(regularizer, parameters, self.part(anchors, parameters)), parameters, self
        )

    def reshard(self, model: nn.Module) -> None:
        if model in self._engines:
            self._engines[model].reshard()  # a root stays gathered after a forward without a backward

    def whole(self, weights: Mapping[str, Tensor], *, everywhere: bool = False) -> Weights:
        together: Weights = {}
        for name, tensor in weights.items():  # one at a time: a device never holds more than one whole tensor
            full = _full(tensor.detach())
            if self.first or everywhere:
                together[name] = full.reshape(()).cpu() if self._scalar(name) else full.cpu()
        return together

    def part(self, weights: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> Weights:
        return {name: _part(tensor, like.get(name)) for name, tensor in weights.items()}

    def _scalar(self, name: str) -> bool:
        """FSDP cuts along the first axis, so a scalar is given one while it trains. "NAME/…" belongs to NAME."""
        return name in self._scalars or name.rpartition("/")[0] in self._scalars


class _Held:
    """A regularizer on shards: norms and products are those of whole tensors, its few own numbers are everywhere."""

    def __init__(self, hold: Attached, parameters: Mapping[str, Tensor], world: Sharded) -> None:
        self.hold, self.parameters, self.world = hold, parameters, world

    def pull(self) -> None:
        with implicit_replication():
            self.hold.pull()

    def clamp(self, lr: float) -> None:
        with implicit_replication():
            self.hold.clamp(lr)

    def state_dict(self) -> dict[str, Any]:
        return self.hold.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        like = {
            place: self.parameters[name]
            for place in state
            if (name := place.partition("/")[2]) in self.parameters
        }
        self.hold.load_state_dict(self.world.part(state, like))


def blocks(model: nn.Module) -> list[nn.Module]:
    """The repeated parts of a model, outermost first: what is gathered, used and dropped one after the other."""
    found: list[nn.Module] = []
    for child in model.children():
        parts = list(child.children())
        repeated = isinstance(child, nn.ModuleList | nn.Sequential) and len(parts) > 1
        if repeated and len({type(part) for part in parts}) == 1 and any(True for _ in parts[0].parameters()):
            found += parts
        else:
            found += blocks(child)
    return found


def _cut(model: nn.Module, root: nn.Module, mesh: DeviceMesh) -> FSDPModule:
    for parameter in model.parameters():
        if parameter.ndim == 0:
            parameter.data = parameter.data.reshape(1)
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    # The root stays gathered until its backward: losses look at its projections, class rows and temperature.
    return fully_shard(root, mesh=mesh, reshard_after_forward=False)


def _mesh(kind: str, size: int, neighbours: int) -> DeviceMesh:
    if neighbours in (1, size) or size % neighbours:
        return init_device_mesh(kind, (size,))
    return init_device_mesh(kind, (size // neighbours, neighbours), mesh_dim_names=("machine", "process"))


def _full(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _part(tensor: Tensor, like: Tensor | None) -> Tensor:
    if not isinstance(like, DTensor) or isinstance(tensor, DTensor):
        return tensor
    placed = tensor.to(like.device, like.dtype).reshape(like.shape)
    # Every process has read the whole tensor and keeps its own part: nothing is sent.
    return distribute_tensor(placed, like.device_mesh, like.placements, src_data_rank=None)
