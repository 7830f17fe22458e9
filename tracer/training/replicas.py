"""Several students trained side by side on the same task and merged every so often."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils.data import Dataset

from tracer.core.batch import Batch
from tracer.core.weights import Weights
from tracer.data.loader import Batches
from tracer.methods.base import Merge
from tracer.training import checkpoint as checkpoints
from tracer.training.checkpoint import Checkpoint
from tracer.training.step import State


@torch.no_grad()
def meet(merge: Merge, start: Weights, states: Sequence[State]) -> None:
    """Put the merge in every student's place; each keeps its optimiser and goes on from there."""
    world, weights = states[0].world, [state.student.state_dict() for state in states]
    whole, *wholes = (world.whole(each, everywhere=True) for each in (start, *weights))
    merged = merge(whole, wholes)
    for state, own in zip(states, weights, strict=True):
        state.student.load_state_dict(world.part(merged, own))


class Rounds(Dataset[list[Batch]]):
    """The batches of all replicas at a step, each replica with an order and captions of its own."""

    def __init__(self, replicas: Sequence[Batches]) -> None:
        self.replicas = replicas
        self.per_epoch = replicas[0].per_epoch

    def __getitem__(self, step: int) -> list[Batch]:
        return [batches[step] for batches in self.replicas]


def capture(states: Sequence[State]) -> Checkpoint:
    """One checkpoint of all replicas; that of a single one looks as if there were no replicas."""
    first, *others = [checkpoints.capture(state) for state in states]
    tensors, counters = dict(first.tensors), dict(first.counters)
    for index, other in enumerate(others, start=1):
        tensors |= {f"{owner}-{index}": weights for owner, weights in other.tensors.items()}
        counters[f"replica-{index}"] = other.counters
    return Checkpoint(tensors, counters)


def restore(states: Sequence[State], checkpoint: Checkpoint) -> None:
    """Put freshly built replicas where the checkpoint was taken."""
    checkpoints.restore(states[0], checkpoint)
    for index, state in enumerate(states[1:], start=1):
        mark = f"-{index}"
        own = {owner.removesuffix(mark): w for owner, w in checkpoint.tensors.items() if owner.endswith(mark)}
        checkpoints.restore(state, Checkpoint(own, checkpoint.counters[f"replica-{index}"]))
