"""The one communication in the forward pass: the rows of all processes, with gradient."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tracer.core.batch import Embedding, Scene

# What every process computes alike, out of weights and texts that are the same everywhere: it stays as it is.
ALIKE = ("scale", "classes", "probe", "projections")


class Gather(torch.autograd.Function):
    """Rows of all processes, in order of rank.

    Every process computes the whole loss L of the global batch, so each holds all of ∂L/∂rows already: the sum
    over W processes that the transpose of a gather asks for is W times one's own part, without communication.
    DDP and FSDP then divide by W, and the gradient is that of a single process.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        ctx.count = len(own)
        return gathered(own)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        start = dist.get_rank() * ctx.count
        return dist.get_world_size() * gradients[0][start : start + ctx.count]


def gathered(own: Tensor) -> Tensor:
    """Equally many rows of each process, without gradient."""
    rows = own.new_empty(dist.get_world_size() * len(own), *own.shape[1:])
    dist.all_gather(list(rows.chunk(dist.get_world_size())), own.contiguous())
    return rows


def global_scene(scene: Scene) -> Scene:
    """A scene of the whole batch out of each process's part of it."""
    return scene._replace(
        student=_global(scene.student),
        teacher=None if scene.teacher is None else _global(scene.teacher),
        label=None if scene.label is None else gathered(scene.label),
    )


def _global(embedding: Embedding) -> Embedding:
    rows = embedding._replace(**dict.fromkeys((*ALIKE, "anchors")))
    whole: Embedding = tree_map_only(Tensor, Gather.apply, rows)
    anchors = None if embedding.anchors is None else _global(embedding.anchors)
    return whole._replace(**{name: getattr(embedding, name) for name in ALIKE}, anchors=anchors)
