"""A command among the processes it was started in: alone, or by torchrun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracer.console import stop_at_once
from tracer.parallel import World, launch


@contextmanager
def launched(device: str, precision: str = "auto", *, shard: bool = False) -> Iterator[World]:
    """The world this process was started in, left in good order unless something went wrong."""
    world = launch(device, precision, shard=shard, lost=stop_at_once)
    with world.guard():
        yield world
        world.close()
