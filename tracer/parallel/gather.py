"""All-gather with gradient: the only communication in the forward pass."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tracer.core.batch import Embedding, Scene, Share


class Gather(torch.autograd.Function):
    """Rows of all processes, in order of rank.

    Every process computes the whole loss L of the global batch, so each has all of ∂L/∂rows already: the sum over W
    processes in the transpose of a gather is W times the process's own rows, without communication. DDP and FSDP
    then divide by W, and the gradient is that of a single process. If some loss is divided among the processes
    (`shared`, see `Total`), the sum is taken by communication.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, shared: bool = False) -> Tensor:
        ctx.count, ctx.shared = len(own), shared
        return all_gather(own)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        start = dist.get_rank() * ctx.count
        own = slice(start, start + ctx.count)
        if not ctx.shared:
            return dist.get_world_size() * gradients[0][own], None
        gradient = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        return gradient[own], None


class Total(torch.autograd.Function):
    """The sum of a loss over processes that each have a part of it.

    Every process continues with the same sum, so the transpose, a sum over processes too, is W times the gradient.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        del ctx
        total = own.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        del ctx
        return dist.get_world_size() * gradients[0]


def all_gather(own: Tensor) -> Tensor:
    """The rows of all processes, without gradient; each must have the same number of rows."""
    rows = own.new_empty(dist.get_world_size() * len(own), *own.shape[1:])
    dist.all_gather(list(rows.chunk(dist.get_world_size())), own.contiguous())
    return rows


def global_scene(scene: Scene) -> Scene:
    """The scene of the global batch, from each process's part of it.

    Sigmoid losses, which are sums over pairs, are divided among the processes; all other losses are computed by each.
    """
    sigmoid = scene.student.bias is not None
    return scene._replace(
        share=Share(dist.get_rank(), dist.get_world_size(), Total.apply) if sigmoid else scene.share,
        student=_global(scene.student),
        teacher=None if scene.teacher is None else _global(scene.teacher),
        label=None if scene.label is None else all_gather(scene.label),
    )


def _global(embedding: Embedding) -> Embedding:
    """The rows of all processes; what is no row of a pair is equal in all of them, because weights and texts are."""
    shared = embedding.bias is not None
    anchors = None if embedding.anchors is None else _global(embedding.anchors)
    return embedding.with_rows(lambda own: Gather.apply(own, shared))._replace(anchors=anchors)
