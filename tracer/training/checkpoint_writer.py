"""Writes checkpoints beside training: a step waits for a copy of the state in memory, not for the disk."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch

from tracer.parallel.memory import free_memory
from tracer.training.checkpoint import Checkpoint, save

RESERVE = 2  # a copy may take 1/RESERVE of the free memory


class CheckpointWriter:
    """A context around training in which a thread writes checkpoints, one at a time; its end waits for the last one.

    `begin` returns as soon as the state is copied. `finish` waits for the disk, raises what went wrong in writing, and
    has to be called before the next `begin`. Where free memory does not suffice for a copy, `begin` writes by itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds = 0.0  # that the last checkpoint took to write
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.shutdown()

    @property
    def failed(self) -> bool:
        """Whether `finish` would raise, as far as is known now."""
        return self._pending is not None and self._pending.done() and self._pending.exception() is not None

    def begin(self, step: int, checkpoint: Checkpoint) -> None:
        """Copy a checkpoint and begin to write it."""
        if self._pending is not None:
            raise RuntimeError("the checkpoint before is not finished")
        if _fits(checkpoint):
            self._pending = self._thread.submit(self._write, step, _copy(checkpoint))
        else:
            self._write(step, checkpoint)

    def finish(self) -> None:
        """Wait until the checkpoint is on the disk. Raises OSError if it cannot be written."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

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
