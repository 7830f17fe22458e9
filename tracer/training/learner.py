"""Students with their data in one stage of training."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Takes training steps with one student, or with `replicas` of it that are merged; can be saved and restored.

    Each replica has its own optimiser and its own order of the data, as in Model Stock.
    """

    def __init__(
        self,
        states: Sequence[State],
        batches: Sequence[Batches],
        seed: int,
        replicas: Replicas | None = None,
    ) -> None:
        self.states, self.seed, self.replicas = states, seed, replicas
        self.state, self.batches = states[0], batches[0]  # of the first, or only, student
        self.data = JointBatches(batches)
        self.start = (
            {name: tensor.clone() for name, tensor in self.state.student.state_dict().items()}
            if replicas
            else {}
        )

    def step(self, number: int, batch: Sequence[Batch]) -> tuple[Loss, ...]:
        """Take step `number` of the run, from 1, with a batch for each student. Returns the loss of each."""
        losses = tuple(
            seeded_step(state, own, self.seed, number - 1 + (replica << 40))
            for replica, (state, own) in enumerate(zip(self.states, batch, strict=True))
        )
        if self.replicas:
            last = self.state.step == self.state.schedule.steps
            if last or self.replicas.due(self.state.step, self.batches.per_epoch):
                self.merge(self.replicas)
        return losses

    @torch.no_grad()
    def merge(self, replicas: Replicas) -> None:
        """Replace the weights of every replica by their merge; the optimisers stay as they are."""
        world, weights = self.state.world, [state.student.state_dict() for state in self.states]
        start, *ends = (world.full_tensors(each, everywhere=True) for each in (self.start, *weights))
        merged = replicas.merge(start, ends)
        for state, own in zip(self.states, weights, strict=True):
            state.student.load_state_dict(world.shard_like(merged, own))

    def capture(self) -> Checkpoint:
        """A checkpoint of the current state; names of further replicas than the first are numbered."""
        first, *others = [checkpoints.capture(state) for state in self.states]
        for index, other in enumerate(others, start=1):
            first.tensors.update({f"{owner}-{index}": weights for owner, weights in other.tensors.items()})
            first.counters[f"replica-{index}"] = other.counters
        return first

    def restore(self, checkpoint: Checkpoint) -> None:
        """Load a checkpoint."""
        checkpoints.restore(self.state, checkpoint)
        for index, state in enumerate(self.states[1:], start=1):
            suffix = f"-{index}"
            tensors = {
                owner.removesuffix(suffix): weights
                for owner, weights in checkpoint.tensors.items()
                if owner.endswith(suffix)
            }
            checkpoints.restore(state, Checkpoint(tensors, checkpoint.counters[f"replica-{index}"]))


class JointBatches(Dataset[list[Batch]]):
    """The batches of all students at a step, indexed by the number of the step, from 0."""

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
