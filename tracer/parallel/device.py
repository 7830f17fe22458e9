"""Which device computes, in which precision, and how images lie in its memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tracer.core.errors import UserError, unknown

PRECISIONS = ("auto", "fp32", "bf16")


def device(name: str, index: int | None = None) -> torch.device:
    """A device by name, "auto" for the best there is; on machines with several, number `index` of them."""
    if name == "auto":
        present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        name = next(kind for kind, there in present.items() if there)
    try:
        chosen = torch.device(name)
        if chosen.type == "cuda" and chosen.index is None and index is not None:
            chosen = torch.device("cuda", index)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError):
        raise unknown("or absent device", name, ("auto", "cpu", "cuda", "mps")) from None
    return chosen


def bf16(device: torch.device, precision: str) -> bool:
    """bf16 only where the hardware has it: emulated, by a CPU or by a GPU before Ampere, it is many times slower."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "bf16" and not able and device.type != "cpu":
        raise UserError(f"{device} has no bf16; use --precision fp32")
    return precision == "bf16" or (precision == "auto" and able)


def channels_last(model: nn.Module) -> nn.Module:
    """Let a tower of convolutions keep the channels of a pixel side by side, as tensor cores read them; in place.

    Values are the same, and so are files: weights are made contiguous when they are written. The one convolution of a
    transformer cuts patches, and is left as it is.
    """
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    if len(convolutions) > 1:
        for each in convolutions:
            each.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return model


def laid_out(tensor: Tensor, like: Tensor | None) -> Tensor:
    """A tensor in the layout of another one: a fused optimiser wants parameter and moments alike."""
    if like is None or like.shape != tensor.shape or like.stride() == tensor.stride():
        return tensor
    return torch.empty_like(like, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
