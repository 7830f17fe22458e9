"""All-gather with gradient: the only communication in the forward pass."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tracer.core.batch import Embedding, Scene

# Fields that are equal in all processes, because weights and texts are: they are not gathered.
REPLICATED = ("scale", "classes", "probe", "projections")


class Gather(torch.autograd.Function):
    """Rows of all processes, in order of rank.

    Every process computes the whole loss L of the global batch, so each has all of ∂L/∂rows already: the sum over W
    processes in the transpose of a gather is W times the process's own rows, without communication. DDP and FSDP
    then divide by W, and the gradient is that of a single process.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        ctx.count = len(own)
        return all_gather(own)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        start = dist.get_rank() * ctx.count
        return dist.get_world_size() * gradients[0][start : start + ctx.count]


def all_gather(own: Tensor) -> Tensor:
    """The rows of all processes, without gradient; each must have the same number of rows."""
    rows = own.new_empty(dist.get_world_size() * len(own), *own.shape[1:])
    dist.all_gather(list(rows.chunk(dist.get_world_size())), own.contiguous())
    return rows


def global_scene(scene: Scene) -> Scene:
    """The scene of the global batch, from each process's part of it."""
    return scene._replace(
        student=_global(scene.student),
        teacher=None if scene.teacher is None else _global(scene.teacher),
        label=None if scene.label is None else all_gather(scene.label),
    )


def _global(embedding: Embedding) -> Embedding:
    rows = embedding._replace(**dict.fromkeys((*REPLICATED, "anchors")))
    gathered: Embedding = tree_map_only(Tensor, Gather.apply, rows)
    anchors = None if embedding.anchors is None else _global(embedding.anchors)
    return gathered._replace(**{name: getattr(embedding, name) for name in REPLICATED}, anchors=anchors)
