"""Which device computes, and in which precision."""

from __future__ import annotations

import torch

from tracer.errors import UserError, unknown

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
