"""The two forms of packed attention, whose queries, keys and values are made by the rows of one matrix.

torch's `nn.MultiheadAttention` is in the towers of open_clip 3. open_clip's own attention, in its custom blocks and,
from version 4 on, in all of its towers, holds the same tensors under the same names as parameters of its own. Whoever
has to know the form asks here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

Project = Callable[
    [Tensor, slice], Tensor
]  # an input, and the rows of the matrix: queries, keys, values, or several


def packed(module: nn.Module) -> bool:
    """Whether a module is packed attention, in either form."""
    if isinstance(module, nn.MultiheadAttention):
        return module._qkv_same_embed_dim and module.bias_k is None and not module.add_zero_attn
    return own_form(module)


def own_form(module: nn.Module) -> bool:
    """Whether a module is packed attention in open_clip's form: a matrix of its own, and a linear layer at its end."""
    weight = getattr(module, "in_proj_weight", None)
    return (
        not isinstance(module, nn.MultiheadAttention)
        and isinstance(weight, Tensor)
        and weight.ndim == 2
        and len(weight) == 3 * weight.shape[1]
        and isinstance(getattr(module, "out_proj", None), nn.Linear)
        and isinstance(getattr(module, "num_heads", None), int)
    )


def attend(
    layer: Any,
    project: Project,
    query: Float[Tensor, "n l d"],
    key: Float[Tensor, "n k d"],
    mask: Tensor | None,
) -> Float[Tensor, "n l d"]:
    """The output of packed attention whose keys and values have one input; `mask` is added to its scores."""
    if query is key:  # which saves products of matrices
        parts = project(query, slice(None)).chunk(3, dim=-1)
    else:
        width = layer.in_proj_weight.shape[1]
        parts = (project(query, slice(width)), *project(key, slice(width, None)).chunk(2, dim=-1))
    q, k, v = (part.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2) for part in parts)
    if mask is not None and mask.ndim == 3:
        mask = mask.unflatten(0, (-1, layer.num_heads))
    if isinstance(layer, nn.MultiheadAttention):
        drop = layer.dropout
    else:
        q, k, drop = _through(layer, "ln_q", q), _through(layer, "ln_k", k), _dropout(layer)
    drop = drop if layer.training else 0.0
    heads = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=drop)
    if getattr(layer, "head_scale", None) is not None:
        heads = heads * layer.head_scale
    output = layer.out_proj(_through(layer, "ln_inner", heads.transpose(1, 2).flatten(2)))
    return _through(layer, "out_drop", output)


@torch.no_grad()
def computes_otherwise(layer: Any) -> bool:
    """Whether attention in open_clip's form has other outputs than `attend`: one that does more than is known here."""
    weight, training = layer.in_proj_weight, layer.training
    if weight.is_meta:  # without values
        return False
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, weight.shape[1], generator=generator).to(weight)
    mask = torch.full((3, 3), -torch.inf).triu_(1).to(weight)

    def project(x: Tensor, rows: slice) -> Tensor:
        bias = layer.in_proj_bias
        return linear(x, weight[rows], None if bias is None else bias[rows])

    layer.eval()
    try:
        expected = layer(x, attn_mask=mask)
    except TypeError:  # it takes other arguments
        return True
    finally:
        layer.train(training)
    if not isinstance(expected, Tensor) or expected.shape != x.shape:
        return True
    difference = (attend(layer, project, x, x, mask) - expected).abs().max()
    return bool(
        difference > 64 * torch.finfo(weight.dtype).eps * weight.shape[1] ** 0.5 * expected.abs().max()
    )


def _through(layer: nn.Module, name: str, x: Tensor) -> Tensor:
    part = getattr(layer, name, None)
    return x if part is None else part(x)


def _dropout(layer: nn.Module) -> float:
    return getattr(getattr(layer, "attn_drop", None), "p", 0.0)
