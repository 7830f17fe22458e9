"""Writes checkpoints, and the weights of the end, beside other work: a step waits for a copy of the state only."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import torch

from tracer.parallel.memory import free_memory
from tracer.training.checkpoint import Checkpoint, save
from tracer.training.interrupt import Interrupted

RESERVE = 2  # a copy may take 1/RESERVE of the free memory


class CheckpointWriter:
    """A context around training in which a thread writes checkpoints, one at a time; its end waits for the last one.

    `begin` returns as soon as the state is copied, or at once if it is `final` and does not change any more. `then`
    writes further files after it. `finish` waits for the disk, raises what went wrong in writing, and has to be called
    before the next `begin`. Where free memory does not suffice for a copy, `begin` writes by itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds = 0.0  # that the last checkpoint took to write
        self._thread = ThreadPoolExecutor(1)
        self._pending: list[Future[object]] = []

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.shutdown()
        if exception[0] in (None, Interrupted):  # which says that the run is saved
            self.finish()

    @property
    def failed(self) -> bool:
        """Whether `finish` would raise, as far as is known now."""
        return any(each.done() and each.exception() is not None for each in self._pending)

    def begin(self, step: int, checkpoint: Checkpoint, *, final: bool = False) -> None:
        """Copy a checkpoint, if it is not `final`, and begin to write it."""
        if self._pending:
            raise RuntimeError("the checkpoint before is not finished")
        if final or _fits(checkpoint):
            self.then(partial(self._write, step, checkpoint if final else _copy(checkpoint)))
        else:
            self._write(step, checkpoint)

    def then(self, write: Callable[[], object]) -> None:
        """Call `write` after what has begun."""
        self._pending.append(self._thread.submit(write))

    def finish(self) -> None:
        """Wait until all is on the disk. Raises OSError if it cannot be written."""
        wait(self._pending)
        pending, self._pending = self._pending, []
        for each in pending:
            each.result()

    def _write(self, step: int, checkpoint: Checkpoint) -> None:
        start = time.monotonic()
        save(self.folder, step, checkpoint)
        self.seconds = time.monotonic() - start


def _fits(checkpoint: Checkpoint) -> bool:
    room = free_memory(torch.device("cpu"))
    size = sum(tensor.nbytes for weights in checkpoint.tensors.values() for tensor in weights.values())
    return room is None or RESERVE * size <= room


def _copy(checkpoint: Checkpoint) -> Checkpoint:
    tensors = {
        owner: {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}
        for owner, weights in checkpoint.tensors.items()
    }
    return Checkpoint(tensors, checkpoint.counters)
