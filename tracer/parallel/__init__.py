"""Devices, precision and processes.

`launched` gives the `World` of this process: a single one, or one of several that `torchrun` started. All other code
calls the methods of `World` and does not depend on which it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracer.core.errors import AlreadyReported, UserError
from tracer.parallel.device import PRECISIONS
from tracer.parallel.launcher import launch
from tracer.parallel.world import Lost, World

# Seconds that processes without a message wait: a launcher ends all with the first, which may not have said it yet.
COURTESY = 5.0


def require_one_process(what: str) -> None:
    """Raise if a launcher has started several processes for what only one can do; the first of them says so."""
    own = launch()
    if own.size == 1:
        return
    if own.rank > 0:
        from tracer.parallel.heartbeat import ended_by_signals  # late, as below

        with ended_by_signals():
            time.sleep(COURTESY)
        raise AlreadyReported
    raise UserError(
        f"{what} runs in one process, and {own.size} were started: leave out torchrun, or unset WORLD_SIZE"
    )


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
    if launch().size == 1:
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


__all__ = ["PRECISIONS", "Lost", "World", "launch", "launched", "require_one_process"]
