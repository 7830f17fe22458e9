"""Where the computation happens: the one package that knows devices, precision and processes.

`launch` finds out whether this process is alone or one of those that `torchrun` started. Everybody else calls the
same methods of a `World` and does not ask.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracer.core.errors import UserError
from tracer.parallel.device import PRECISIONS
from tracer.parallel.world import Lost, World


def launch(
    device: str = "auto",
    precision: str = "auto",
    *,
    shard: bool = False,
    lost: Callable[[Lost], None] | None = None,
) -> World:
    """The world this process was started in: alone, or with others, each with a copy or a shard of the weights.

    `lost` is called, from a thread of its own, when another process has not been heard of for half a minute.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        if shard:
            raise UserError("--shard needs several processes: torchrun --nproc-per-node=N -m tracer …")
        return World(device, precision)
    from tracer.parallel.replicated import Replicated  # torch.distributed is not for those who are alone
    from tracer.parallel.sharded import Sharded

    world = (Sharded if shard else Replicated)(device, precision)
    if lost is not None:
        world.watch(lost)
    return world


@contextmanager
def launched(
    device: str = "auto",
    precision: str = "auto",
    *,
    shard: bool = False,
    lost: Callable[[Lost], None] | None = None,
) -> Iterator[World]:
    """The world of `launch`, left in good order unless something went wrong."""
    world = launch(device, precision, shard=shard, lost=lost)
    with world.guard():
        yield world
        world.close()


__all__ = ["PRECISIONS", "Lost", "World", "launch", "launched"]
