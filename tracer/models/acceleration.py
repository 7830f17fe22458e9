"""Savings that leave results unchanged: gradient checkpointing, a shorter last block, compilation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.models.gradient_cache import refuse_batch_statistics
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student
from tracer.models.text import text_tower


def save_memory(student: Student, *, chunk: int | None = None, checkpointing: bool = False) -> None:
    """Prepare a student for chunked batches and gradient checkpointing; an error if the model does not allow it."""
    if chunk is not None:
        refuse_batch_statistics(student)
    if checkpointing:
        recompute_blocks(student)


def recompute_blocks(student: Student) -> None:
    """Gradient checkpointing: recompute the activations of each block in the backward pass (arXiv 1604.06174)."""
    student.clip.set_grad_checkpointing(True)
    if not any(getattr(module, "grad_checkpointing", False) for module in student.image_tower.modules()):
        student.clip.set_grad_checkpointing(False)
        raise UserError(f"--checkpointing: open_clip cannot recompute the image tower of {student.name}")


def class_token_only(student: Student, enabled: bool = True) -> None:
    """Let the last block of the image tower compute the class token only, or undo this with `enabled=False`.

    A tower that pools at its class token drops all other tokens of that block, so only their keys and values are
    needed. The features do not change.
    """
    block = _last_block(student.image_tower)
    if block is not None and enabled:
        block.forward = MethodType(_class_token_forward, block)
    elif block is not None:
        vars(block).pop("forward", None)


@contextmanager
def without_other_tokens(student: Student) -> Iterator[None]:
    """A context with `class_token_only`; afterwards the last block is as it was."""
    block = _last_block(student.image_tower)
    before = block is None or "forward" in vars(block)
    class_token_only(student)
    try:
        yield
    finally:
        if not before:
            class_token_only(student, False)


def _last_block(tower: Any) -> Any:
    """The last block of a tower that uses its class token only; None for other towers."""
    layers = open_clip.transformer
    if not isinstance(tower, layers.VisionTransformer) or tower.output_tokens or tower.attn_pool is not None:
        return None
    block = tower.transformer.resblocks[-1]
    supported = isinstance(block, layers.ResidualAttentionBlock) and tower.transformer.batch_first
    return block if supported and tower.pool_type == "tok" else None


def _class_token_forward(
    block: Any, x: Tensor, k_x: None = None, v_x: None = None, attn_mask: Tensor | None = None
) -> Tensor:
    """The first token of open_clip's residual block; image towers use self-attention."""
    del k_x, v_x
    tokens, mask = block.ln_1(x), None if attn_mask is None else attn_mask[:1]
    first = x[:, :1] + block.ls_1(block.attention(tokens[:, :1], tokens, tokens, mask))
    return first + block.ls_2(block.mlp(block.ln_2(first)))


def compile_towers(*students: nn.Module, backend: str = "inductor") -> None:
    """Compile both towers in place, at their first call; parameter names do not change."""
    for student in students:
        clip: Any = student.get_submodule("clip")
        text: Any = text_tower(clip)
        clip.visual.compile(backend=backend)
        getattr(text, "transformer", text).compile(backend=backend)
