"""A student with its data in one stage of training."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import Dataset

from tracer.core.batch import Batch
from tracer.core.objective import Loss
from tracer.data.loader import Batches
from tracer.training import checkpoint as checkpoints
from tracer.training.checkpoint import Checkpoint
from tracer.training.step import State, step


class Learner:
    """Takes training steps on batches of its data; can be saved and restored."""

    def __init__(self, state: State, batches: Batches, seed: int) -> None:
        self.state, self.batches, self.seed = state, batches, seed

    @property
    def data(self) -> Dataset[Any]:
        """The batches for `step`, indexed by the number of the step, from 0."""
        return self.batches

    def step(self, number: int, batch: Any) -> tuple[Loss, ...]:
        """Take step `number` of the run, from 1. Returns the loss of each replica."""
        return (seeded_step(self.state, batch, self.seed, number - 1),)

    def capture(self) -> Checkpoint:
        """A checkpoint of the current state."""
        return checkpoints.capture(self.state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Load a checkpoint."""
        checkpoints.restore(self.state, checkpoint)


def seeded_step(state: State, batch: Batch, seed: int, number: int) -> Loss:
    """Take a step whose dropout depends only on seed, step and process, so that a resumed run repeats it."""
    torch.manual_seed(step_seed(seed, number + (state.world.rank << 50)))
    return step(state, batch)


def step_seed(seed: int, number: int) -> int:
    """The seed of one step of a run."""
    return (seed * 0x9E3779B97F4A7C15 + number) % 2**63
