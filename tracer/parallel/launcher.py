"""What a launcher such as torchrun tells each process that it starts, in variables of the environment."""

from __future__ import annotations

import os
from typing import NamedTuple

from tracer.core.errors import UserError


class Launch(NamedTuple):
    """One of the processes of a launcher; without one, the only process."""

    rank: int
    size: int
    local_rank: int  # on its machine
    local_size: int
    restarts: bool  # whether the launcher may start the command again when a process is lost


def launch() -> Launch:
    """This process, as its launcher numbers it. Raises UserError for numbers that no launcher gives."""
    size, local_size = _number("WORLD_SIZE", 1, least=1), _number("LOCAL_WORLD_SIZE", 1, least=1)
    rank, local_rank = (_number(name, 0) if size > 1 else 0 for name in ("RANK", "LOCAL_RANK"))
    if rank >= size:
        raise _wrong("RANK", f"{rank} of WORLD_SIZE {size}")
    return Launch(rank, size, local_rank, local_size, restarts="TORCHELASTIC_RESTART_COUNT" in os.environ)


def _number(name: str, default: int, least: int = 0) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) < least:
        raise _wrong(name, repr(text))
    return int(text)


def _wrong(name: str, value: str) -> UserError:
    return UserError(f"{name} is {value} in the environment: unset it, or start with torchrun")
