"""What a stage may save: memory, by computing again what need not be kept; time, by leaving out and compiling."""

from __future__ import annotations

from types import MethodType
from typing import Any

from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.models.gradient_cache import refuse_batch_statistics
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student
from tracer.models.text import text_tower


def save_memory(student: Student, *, chunk: int | None = None, checkpointing: bool = False) -> None:
    """Make a student ready for chunks and checkpoints, or say why it cannot be; gradients stay the same."""
    if chunk is not None:
        refuse_batch_statistics(student)
    if checkpointing:
        recompute_blocks(student)


def recompute_blocks(student: Student) -> None:
    """Keep only what enters each block and compute the inside again on the way back (arXiv 1604.06174)."""
    student.clip.set_grad_checkpointing(True)
    if not any(getattr(module, "grad_checkpointing", False) for module in student.image_tower.modules()):
        student.clip.set_grad_checkpointing(False)
        raise UserError(f"--checkpointing: open_clip cannot recompute the image tower of {student.name}")


def end_early(student: Student, early: bool = True) -> None:
    """Let the last block of an image tower compute the class token alone, where that is all anybody looks at.

    A tower that pools at its class token drops all other rows of that block: of the 12 products of a row with a
    matrix of weights only those for keys and values are needed of them. What comes out is the same.
    """
    block = _block_before_pooling(student.image_tower)
    if block is not None and early:
        block.forward = MethodType(_class_token, block)
    elif block is not None:
        vars(block).pop("forward", None)


def _block_before_pooling(tower: Any) -> Any:
    """The last block of a tower of which the class token alone is used; None for all others."""
    parts: Any = open_clip.transformer  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(tower, parts.VisionTransformer) or tower.output_tokens or tower.attn_pool is not None:
        return None
    block = tower.transformer.resblocks[-1]
    usual = isinstance(block, parts.ResidualAttentionBlock) and tower.transformer.batch_first
    return block if usual and tower.pool_type == "tok" else None


def _class_token(block: Any, x: Tensor, k_x: None = None, v_x: None = None, attn_mask: None = None) -> Tensor:
    """open_clip's residual block, of which only the first row is asked; images attend to themselves, unmasked."""
    del k_x, v_x, attn_mask
    rows = block.ln_1(x)
    first = x[:, :1] + block.ls_1(block.attention(rows[:, :1], rows, rows))
    return first + block.ls_2(block.mlp(block.ln_2(first)))


def compile_towers(*students: nn.Module, backend: str = "inductor") -> None:
    """Have both towers compiled at their first call, in place: names and weights stay what they are."""
    for student in students:
        clip: Any = student.get_submodule("clip")
        text: Any = text_tower(clip)
        clip.visual.compile(backend=backend)
        getattr(text, "transformer", text).compile(backend=backend)
