"""The towers of open_clip's next version, from its public description, in place of those of the installed one.

Attention keeps the matrices of torch's layer under the same names, as parameters of its own, and takes batches first;
so do the blocks, which no longer say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from tracer.models.open_clip_compat import open_clip

layers: Any = open_clip.transformer


class Attention(nn.Module):
    """Self-attention, or attention of `x` to `k_x` and `v_x`."""

    def __init__(self, dim: int, num_heads: int = 8, sharpened: bool = False) -> None:
        super().__init__()
        reference = nn.MultiheadAttention(dim, num_heads)
        self.num_heads, self.sharpened = num_heads, sharpened
        self.in_proj_weight, self.in_proj_bias = reference.in_proj_weight, reference.in_proj_bias
        self.ln_q, self.ln_k, self.ln_inner = (nn.Identity() for _ in range(3))
        self.logit_scale = self.head_scale = None
        self.out_proj = nn.Linear(dim, dim)
        self.attn_drop, self.out_drop = nn.Dropout(0.0), nn.Dropout(0.0)

    def forward(
        self, x: Tensor, k_x: Tensor | None = None, v_x: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        inputs = (x, x if k_x is None else k_x, x if v_x is None else v_x)
        matrices, biases = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        projected = (linear(*each) for each in zip(inputs, matrices, biases, strict=True))
        q, k, v = (each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for each in projected)
        if self.sharpened:
            q = 2 * q
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.unflatten(0, (-1, self.num_heads))
        heads = scaled_dot_product_attention(self.ln_q(q), self.ln_k(k), v, attn_mask=attn_mask)
        return self.out_drop(self.out_proj(self.ln_inner(heads.transpose(1, 2).flatten(2))))


class Block(layers.ResidualAttentionBlock):
    def __init__(self, d_model: int, n_head: int, *rest: Any, **more: Any) -> None:
        super().__init__(d_model, n_head, *rest, **more)
        with torch.random.fork_rng(devices=[]):
            own = Attention(d_model, n_head)
        own.load_state_dict(self.attn.state_dict())  # the same numbers at the same seed
        self.attn: Any = own

    def attention(
        self,
        q_x: Tensor,
        k_x: Tensor | None = None,
        v_x: Tensor | None = None,
        attn_mask: Tensor | None = None,
    ) -> Tensor:
        k_x, v_x = (q_x if each is None else each for each in (k_x, v_x))
        return self.attn(
            q_x, k_x=k_x, v_x=v_x, attn_mask=None if attn_mask is None else attn_mask.to(q_x.dtype)
        )


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, mlp_ratio: float = 4.0, **more: Any) -> None:
        super().__init__()
        self.width, self.layers, self.grad_checkpointing = width, layers, False
        known = {name: more[name] for name in ("ls_init_value", "act_layer", "norm_layer") if name in more}
        self.resblocks = nn.ModuleList([Block(width, heads, mlp_ratio, **known) for _ in range(layers)])

    def get_cast_dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def set_grad_checkpointing(self, enable: bool = True, impl: str = "inline") -> None:
        self.grad_checkpointing = enable

    def forward_intermediates(
        self, x: Tensor, attn_mask: Tensor | None = None, indices: Any = None, stop_early: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        outputs = []
        for block in self.resblocks:
            x = block(x, attn_mask=attn_mask)
            outputs.append(x)
        return x, outputs

    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        for block in self.resblocks:
            if self.grad_checkpointing:
                x = checkpoint(block, x, None, None, attn_mask, use_reentrant=False)  # pyright: ignore
            else:
                x = block(x, attn_mask=attn_mask)
        return x


@contextmanager
def next_open_clip() -> Iterator[None]:
    """Models that are built inside have these towers."""
    with patch.multiple(layers, Attention=Attention, ResidualAttentionBlock=Block, Transformer=Transformer):
        yield
