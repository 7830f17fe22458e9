"""Free memory of a device."""

from __future__ import annotations

from pathlib import Path

import torch

MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")


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
