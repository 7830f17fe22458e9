"""One process on one device, and the words in which it is told apart from many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from tracer.core.batch import Batch, Scene
from tracer.core.errors import UserError
from tracer.core.regularizers.base import Attached, Regularizer
from tracer.core.weights import Weights
from tracer.parallel import device as devices

T = TypeVar("T")


class Lost(UserError):
    """Another process is gone, so this one cannot go on."""


class World:
    """One process on one device: nothing to gather, nobody to wait for, all of the weights at hand."""

    rank = 0
    size = 1
    neighbours = 1  # processes on this machine

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        self.device = devices.device(device)
        self.bf16 = devices.bf16(self.device, precision)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    # The step

    def place(self, model: nn.Module) -> nn.Module:
        """Put a model where it will compute, in the layout that is fast there."""
        placed = model.to(self.device)
        return devices.channels_last(placed) if self.device.type == "cuda" else placed

    def prepare(self, student: nn.Module, teacher: nn.Module | None = None) -> None:
        """Make a student ready to learn, once it is settled what may move; a teacher may be cut alike."""

    def forward(self, function: Callable[..., T], model: nn.Module, *arguments: Any) -> T:
        """`function(model, …)`, so that weights are whole inside and gradients come together on the way back."""
        return function(model, *arguments)

    def to_device(self, batch: Batch) -> Batch:
        """Bring a batch to the model."""
        return tree_map_only(Tensor, lambda tensor: tensor.to(self.device, non_blocking=True), batch)

    def autocast(self) -> AbstractContextManager[object]:
        """Mixed precision for the encoders; losses are computed outside of it, in fp32."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def gather(self, scene: Scene) -> Scene:
        """The global scene, in at least fp32: from here on every term is single-device mathematics."""
        return _full_precision(scene)

    def clip(self, parameters: Iterable[Tensor], max_norm: float) -> Tensor:
        """Shorten the gradient to `max_norm`; returns the norm that it had."""
        return nn.utils.clip_grad_norm_(parameters, max_norm)

    def attach(
        self, regularizer: Regularizer, parameters: Mapping[str, Tensor], anchors: Mapping[str, Tensor]
    ) -> Attached:
        """A regularizer on parameters that may be cut into shards; the anchors are whole."""
        placed = {name: anchors[name].to(p.device, copy=True) for name, p in parameters.items()}
        return regularizer.attach(parameters, placed)

    # Weights, whole and in parts

    def reshard(self, model: nn.Module) -> None:
        """Give up the whole weights that a forward has left behind, before the parts are touched."""

    def whole(self, weights: Mapping[str, Tensor], *, everywhere: bool = False) -> Weights:
        """Named tensors whole, at the first process; unless `everywhere`, the others get none to keep."""
        del everywhere
        return dict(weights)

    def part(self, weights: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> Weights:
        """Whole tensors cut, and laid out, as those of the same name in `like` are."""
        return {name: devices.laid_out(tensor, like.get(name)) for name, tensor in weights.items()}

    # Work divided

    def share(self, rows: range) -> Sequence[int]:
        """The rows that fall to this process; never none, so that all processes take the same steps."""
        return rows

    def collect(self, own: Tensor, count: int) -> Tensor:
        """What all processes made of their shares of `count` rows, in order and each row once."""
        return own[:count]

    def united(self, found: dict[int, str]) -> dict[int, str]:
        """What all processes have found."""
        return found

    # Agreement

    def together(self, action: Callable[[], T]) -> T:
        """Act, and go on only if every process could: what one is refused, all are."""
        return action()

    def lead(self, action: Callable[[], object]) -> None:
        """Let the first process act while the others wait; what it is refused, all are."""
        self.together(action if self.first else lambda: None)

    def agree(self, asked: int | None, due: bool) -> int | None:
        """The signal that any process was sent; several of them look only when it is `due`, at the same step."""
        del due
        return asked

    def guard(self) -> AbstractContextManager[object]:
        """Inside of it, the loss of another process is said as such."""
        return nullcontext()

    def close(self) -> None:
        """Leave, in good order."""


def _full_precision(value: T) -> T:
    half = (torch.bfloat16, torch.float16)
    return tree_map_only(Tensor, lambda tensor: tensor.float() if tensor.dtype in half else tensor, value)
