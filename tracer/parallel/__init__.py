"""Devices, precision and processes.

`launched` gives the `World` of this process: a single one, or one of several that `torchrun` started. All other code
calls the methods of `World` and does not depend on which it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracer.core.errors import UserError
from tracer.parallel.device import PRECISIONS
from tracer.parallel.world import Lost, World


def processes() -> int:
    """The number of processes that a launcher has started."""
    text = os.environ.get("WORLD_SIZE", "1")
    if not text.isdecimal() or not int(text):
        raise UserError(f"WORLD_SIZE is {text!r} in the environment: unset it, or start with torchrun")
    return int(text)


@contextmanager
def launched(
    device: str = "auto",
    precision: str = "auto",
    *,
    shard: bool = False,
    lost: Callable[[Lost], None] | None = None,
) -> Iterator[World]:
    """The world of this process, closed at the end of the block unless an error leaves it.

    Of several processes, each holds a copy (DDP) or a shard (FSDP2) of the weights. `lost` is called from a background
    thread when another process has sent no heartbeat for half a minute.
    """
    if processes() == 1:
        if shard:
            raise UserError("--shard needs several processes: torchrun --nproc-per-node=N -m tracer …")
        world = World(device, precision)
    else:
        from tracer.parallel.replicated import Replicated  # late: a single process needs no torch.distributed
        from tracer.parallel.sharded import Sharded

        world = (Sharded if shard else Replicated)(device, precision)
        if lost is not None:
            world.start_heartbeat(lost)
    with world.guard():
        yield world
        world.close()


__all__ = ["PRECISIONS", "Lost", "World", "launched"]
