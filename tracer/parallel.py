"""Where the computation happens: the one file that knows devices, precision and processes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from tracer.batch import Batch, Scene
from tracer.errors import UserError, unknown

T = TypeVar("T")

PRECISIONS = ("auto", "fp32", "bf16")


class World:
    """One process on one device. Terms see whatever `gather` returns, which here is the batch itself."""

    rank = 0
    size = 1

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        self.device = _device(device)
        self.bf16 = _bf16(self.device, precision)

    def place(self, model: nn.Module) -> nn.Module:
        """Put a model where it will compute."""
        return model.to(self.device)

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


def _full_precision(value: T) -> T:
    half = (torch.bfloat16, torch.float16)
    return tree_map_only(Tensor, lambda tensor: tensor.float() if tensor.dtype in half else tensor, value)


def _device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise unknown("or absent device", name, ("auto", "cpu", "cuda", "mps")) from None
    return device


def _bf16(device: torch.device, precision: str) -> bool:
    """bf16 only where the hardware has it: on a CPU without bf16 instructions it is many times slower."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    able = device.type == "cuda" and torch.cuda.is_bf16_supported()
    if precision == "bf16" and not able and device.type != "cpu":
        raise UserError(f"{device} has no bf16; use --precision fp32")
    return precision == "bf16" or (precision == "auto" and able)
