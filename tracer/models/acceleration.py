"""Savings that leave results unchanged: gradient checkpointing, a shorter last layer, compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from tracer.core.errors import UserError
from tracer.models.gradient_cache import refuse_batch_statistics
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student
from tracer.models.text import text_tower
from tracer.models.towers import Tower

RECOMPUTED = (
    "grad_checkpointing",
    "gradient_checkpointing",
)  # set by open_clip and timm, and by transformers


def save_memory(student: Student, *, chunk: int | None = None, checkpointing: bool = False) -> None:
    """Prepare a student for chunked batches and gradient checkpointing; an error if the model does not allow it.

    Checkpointing recomputes the activations of each block in the backward pass (arXiv 1604.06174).
    """
    if chunk is not None:
        refuse_batch_statistics(student)
    if checkpointing:
        student.clip.set_grad_checkpointing(True)
        for kind, tower in student.towers:
            part = getattr(
                tower, "transformer", tower
            )  # in the original CLIP, the text tower is the whole model
            if not any(
                getattr(module, flag, False) is True for module in part.modules() for flag in RECOMPUTED
            ):
                student.clip.set_grad_checkpointing(False)
                raise UserError(
                    f"--checkpointing: open_clip cannot recompute the {kind} tower of {student.name}"
                )


def class_token_only(student: Student, enabled: bool = True) -> None:
    """Let the last layer of the image tower compute the class token only, or undo this with `enabled=False`.

    A tower that pools at its class token drops all other tokens of its last block, so only their keys and values are
    needed; so does the attention pool of the ResNets of CLIP. The features do not change.
    """
    layer, forward = _last_layer(student.image_tower)
    if layer is not None and enabled:
        layer.forward = MethodType(forward, layer)
    elif layer is not None:
        vars(layer).pop("forward", None)


@contextmanager
def without_other_tokens(student: Student) -> Iterator[None]:
    """A context with `class_token_only`; afterwards the last layer is as it was."""
    layer, _ = _last_layer(student.image_tower)
    before = layer is not None and "forward" in vars(layer)
    class_token_only(student)
    try:
        yield
    finally:
        class_token_only(student, before)


def _last_layer(tower: Any) -> tuple[Any, Callable[..., Tensor]]:
    """The last layer of a tower that uses its class token only, and a shorter forward; None for other towers."""
    layers, resnets = open_clip.transformer, open_clip.modified_resnet
    if isinstance(tower, resnets.ModifiedResNet) and isinstance(tower.attnpool, resnets.AttentionPool2d):
        return tower.attnpool, _attention_pool_forward
    if not isinstance(tower, layers.VisionTransformer) or tower.output_tokens or tower.attn_pool is not None:
        return None, _class_token_forward
    block = tower.transformer.resblocks[-1]
    supported = isinstance(block, layers.ResidualAttentionBlock) and Tower("image", tower).order == "first"
    return block if supported and tower.pool_type == "tok" else None, _class_token_forward


def _class_token_forward(
    block: Any, x: Tensor, k_x: None = None, v_x: None = None, attn_mask: Tensor | None = None
) -> Tensor:
    """The first token of open_clip's residual block; image towers use self-attention."""
    del k_x, v_x
    tokens, mask = block.ln_1(x), None if attn_mask is None else attn_mask[:1]
    first = x[:, :1] + block.ls_1(block.attention(tokens[:, :1], tokens, tokens, mask))
    return first + block.ls_2(block.mlp(block.ln_2(first)))


def _attention_pool_forward(pool: Any, x: Tensor) -> Tensor:
    """The first token of open_clip's attention pool.

    A single query needs no keys and values of the tokens: qᵀ(Kx) = (Kᵀq)ᵀx, and Σ aₜ V xₜ = V Σ aₜ xₜ. So the
    matrices are applied once for an image instead of once for each of its 50 tokens.
    """
    count, width = x.shape[:2]
    x = x.flatten(2).transpose(1, 2)
    x = torch.cat([x.mean(dim=1, keepdim=True), x], dim=1) + pool.positional_embedding.to(x.dtype)
    key, value = (each.weight.view(pool.num_heads, -1, width) for each in (pool.k_proj, pool.v_proj))
    query = linear(x[:, 0], pool.q_proj.weight, pool.q_proj.bias).view(count, *key.shape[:2])
    query = query * key.shape[1] ** -0.5
    # The bias shifts all scores of a query alike; it is kept so that all parameters have a gradient, as DDP requires.
    shift = (query * pool.k_proj.bias.view(key.shape[:2])).sum(dim=-1, keepdim=True)
    scores = torch.einsum("nhd,hdc->nhc", query, key) @ x.transpose(1, 2) + shift
    pooled = torch.einsum("nhc,hdc->nhd", scores.softmax(dim=-1) @ x, value).flatten(1) + pool.v_proj.bias
    return linear(pooled, pool.c_proj.weight, pool.c_proj.bias)


def compile_towers(*students: nn.Module, backend: str = "inductor") -> None:
    """Compile both towers in place, at their first call; parameter names do not change."""
    for student in students:
        clip: Any = student.get_submodule("clip")
        text: Any = text_tower(clip)
        clip.visual.compile(backend=backend)
        getattr(text, "transformer", text).compile(backend=backend)
