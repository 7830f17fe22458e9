"""Students with their data in one stage of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from tracer.core.batch import Batch
from tracer.core.objective import Loss
from tracer.data.loader import Batches
from tracer.methods.base import Replicas
from tracer.training import checkpoint as checkpoints
from tracer.training.checkpoint import Checkpoint
from tracer.training.step import State, step


class Learner:
    """Takes training steps on batches of its data; can be saved and restored."""

    def __init__(self, state: State, batches: Batches, seed: int) -> None:
        self.state, self.batches, self.seed = state, batches, seed
        self.data: Dataset[Any] = batches  # the batches for `step`, indexed by the number of the step, from 0

    def step(self, number: int, batch: Any) -> tuple[Loss, ...]:
        """Take step `number` of the run, from 1. Returns the loss of each replica."""
        return (seeded_step(self.state, batch, self.seed, number - 1),)

    def capture(self) -> Checkpoint:
        """A checkpoint of the current state."""
        return checkpoints.capture(self.state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Load a checkpoint."""
        checkpoints.restore(self.state, checkpoint)


class ReplicatedLearner(Learner):
    """Several copies of one student, each with its own optimiser and its own order of the data, as in Model Stock."""

    def __init__(
        self, states: Sequence[State], batches: Sequence[Batches], seed: int, replicas: Replicas
    ) -> None:
        super().__init__(states[0], batches[0], seed)
        self.states, self.data, self.replicas = states, _JointBatches(batches), replicas
        self.start = {name: tensor.clone() for name, tensor in states[0].student.state_dict().items()}

    def step(self, number: int, batch: Any) -> tuple[Loss, ...]:
        losses = tuple(
            seeded_step(state, own, self.seed, number - 1 + (replica << 40))
            for replica, (state, own) in enumerate(zip(self.states, batch, strict=True))
        )
        last = self.state.step == self.state.schedule.steps
        if last or self.replicas.due(self.state.step, self.batches.per_epoch):
            self.merge()
        return losses

    @torch.no_grad()
    def merge(self) -> None:
        """Replace the weights of every replica by their merge; the optimisers stay as they are."""
        world, weights = self.state.world, [state.student.state_dict() for state in self.states]
        start, *ends = (world.full_tensors(each, everywhere=True) for each in (self.start, *weights))
        merged = self.replicas.merge(start, ends)
        for state, own in zip(self.states, weights, strict=True):
            state.student.load_state_dict(world.shard_like(merged, own))

    def capture(self) -> Checkpoint:
        """The checkpoint of the first replica, with those of the others added under numbered names."""
        first, *others = [checkpoints.capture(state) for state in self.states]
        tensors, counters = dict(first.tensors), dict(first.counters)
        for index, other in enumerate(others, start=1):
            tensors |= {f"{owner}-{index}": weights for owner, weights in other.tensors.items()}
            counters[f"replica-{index}"] = other.counters
        return Checkpoint(tensors, counters)

    def restore(self, checkpoint: Checkpoint) -> None:
        super().restore(checkpoint)
        for index, state in enumerate(self.states[1:], start=1):
            suffix = f"-{index}"
            tensors = {
                owner.removesuffix(suffix): weights
                for owner, weights in checkpoint.tensors.items()
                if owner.endswith(suffix)
            }
            checkpoints.restore(state, Checkpoint(tensors, checkpoint.counters[f"replica-{index}"]))


class _JointBatches(Dataset[list[Batch]]):
    """The batches of all replicas at a step."""

    def __init__(self, replicas: Sequence[Batches]) -> None:
        self.replicas = replicas

    def __getitem__(self, step: int) -> list[Batch]:
        return [batches[step] for batches in self.replicas]


def seeded_step(state: State, batch: Batch, seed: int, number: int) -> Loss:
    """Take a step whose dropout depends only on seed, step and process, so that a resumed run repeats it."""
    torch.manual_seed(step_seed(seed, number + (state.world.rank << 50)))
    return step(state, batch)


def step_seed(seed: int, number: int) -> int:
    """The seed of one step of a run."""
    return (seed * 0x9E3779B97F4A7C15 + number) % 2**63
