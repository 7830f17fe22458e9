"""Device, precision, memory format and free memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from tracer.core.errors import UserError, unknown

PRECISIONS = ("auto", "fp32", "bf16")
MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")


def device(name: str, index: int | None = None) -> torch.device:
    """A device by name; "auto" is the best available one, `index` chooses among several GPUs."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    usable = [kind for kind, there in available.items() if there]
    if name == "auto":
        name = usable[0]
    kind = name.partition(":")[0]
    if kind in available and kind not in usable:
        raise UserError(f"--device {name}: there is no {kind} on this machine; use --device cpu")
    try:
        if kind not in usable:
            raise RuntimeError(name)
        result = torch.device(name)
        if result.type == "cuda" and result.index is None and index is not None:
            result = torch.device("cuda", index)
        torch.empty(0, device=result)
    except (RuntimeError, AssertionError):
        raise unknown("or absent device", name, ("auto", *usable)) from None
    return result


def bf16(device: torch.device, precision: str) -> bool:
    """Whether to compute in bf16; "auto" does so only on hardware that supports it, since emulation is far slower."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "bf16" and not native and device.type != "cpu":
        raise UserError(f"{device} has no bf16; use --precision fp32")
    if precision == "bf16" and device.type == "cpu" and not survives_bf16():
        hint = "use --precision fp32, or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
        raise UserError(f"this processor ends Python (illegal instruction) when it computes in bf16: {hint}")
    return precision == "bf16" or (precision == "auto" and native)


@cache
def survives_bf16() -> bool:
    """Whether a process of its own can multiply matrices in bf16 on the CPU.

    Some virtual machines announce matrix instructions (AMX) that they do not execute, and the process that uses them
    is killed.
    """
    product = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"
    return subprocess.run([sys.executable, "-c", product], capture_output=True).returncode == 0


def channels_last(model: nn.Module) -> nn.Module:
    """Convert the convolutions of a convolutional network to channels-last, the fast layout of CUDA and CPU; in place.

    Values and files do not change: weights are made contiguous when they are written. A model with one convolution
    only, the patch embedding of a transformer, is left as it is.
    """
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    if len(convolutions) > 1:
        for convolution in convolutions:
            convolution.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return model


def match_layout(tensor: Tensor, like: Tensor | None) -> Tensor:
    """`tensor` with the strides of `like`: fused optimisers need parameters and moments in one layout."""
    if like is None or like.shape != tensor.shape or like.stride() == tensor.stride():
        return tensor
    return torch.empty_like(like, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


@contextmanager
def elementary_attention() -> Iterator[None]:
    """Attention as elementary operations: the fused one of eval mode cannot be traced for other runtimes."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def free_memory(device: torch.device) -> int | None:
    """Bytes that this process could still allocate on a device; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type != "cpu" or not MEMINFO.exists():
        return None
    line = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
    return min([1024 * int(line.split()[1]), *_cgroup_limits()])


def _cgroup_limits() -> list[int]:
    """What the container or the scheduler leaves to this process (version 2 of cgroups)."""
    own = Path("/proc/self/cgroup")
    path = own.read_text().strip().rpartition("::/")[2] if own.exists() else ""
    limits = []
    for folder in dict.fromkeys((CGROUPS, CGROUPS / path)):
        limit, usage = folder / "memory.max", folder / "memory.current"
        if limit.exists() and usage.exists() and limit.read_text().strip().isdigit():
            limits.append(int(limit.read_text()) - int(usage.read_text()))
    return limits
