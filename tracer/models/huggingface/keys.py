"""Names of the same weights in open_clip and in transformers.

Both hold the same numbers; queries, keys and values are one tensor here and three there, and projections are
transposed. A `Link` is one such correspondence, used in both directions, so that a round trip is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.weights import Weights

Shapes = Mapping[str, Tensor]  # tensors of which only names and shapes matter

# Parts of names in open_clip and in transformers: of text towers, of CLIP's and SigLIP's image towers, and of blocks.
NAMES = {
    r"^(text\.)?token_embedding": "text_model.embeddings.token_embedding",
    r"^(text\.)?positional_embedding": "text_model.embeddings.position_embedding.weight",
    r"^(text\.)?transformer\.resblocks": "text_model.encoder.layers",
    r"^(text\.)?ln_final": "text_model.final_layer_norm",
    r"^(text\.)?text_projection\.": "text_model.head.",
    r"^(text\.)?text_projection$": "text_projection.weight",
    r"^visual\.class_embedding": "vision_model.embeddings.class_embedding",
    r"^visual\.(conv1|trunk\.patch_embed\.proj)": "vision_model.embeddings.patch_embedding",
    r"^visual\.(positional_embedding|trunk\.pos_embed)": "vision_model.embeddings.position_embedding.weight",
    r"^visual\.(transformer\.resblocks|trunk\.blocks)": "vision_model.encoder.layers",
    r"^visual\.ln_pre": "vision_model.pre_layrnorm",
    r"^visual\.(ln_post|trunk\.norm)": "vision_model.post_layernorm",
    r"^visual\.proj$": "visual_projection.weight",
    r"^visual\.trunk\.attn_pool\.latent": "vision_model.head.probe",
    r"^visual\.trunk\.attn_pool\.q\.": "vision_model.head.attention.in_proj_",
    r"^visual\.trunk\.attn_pool\.proj": "vision_model.head.attention.out_proj",
    r"^visual\.trunk\.attn_pool\.norm": "vision_model.head.layernorm",
    r"^visual\.trunk\.attn_pool\.mlp": "vision_model.head.mlp",
    r"\.(ln_|norm)(?=[12]\.)": ".layer_norm",
    r"\.attn\.(out_)?proj\.": ".self_attn.out_proj.",
    r"\.attn\.(in_proj_|qkv\.)": ".self_attn.*_proj.",
    r"\.mlp\.c_fc\.": ".mlp.fc1.",
    r"\.mlp\.c_proj\.": ".mlp.fc2.",
}


class Link(NamedTuple):
    """Tensors of open_clip that hold the numbers of tensors of transformers, concatenated along the first axis."""

    own: tuple[str, ...]
    theirs: tuple[str, ...]
    transposed: bool = False


def links(own: Shapes) -> Iterator[Link]:
    """All correspondences of an open_clip model with these weights, a CLIP or a SigLIP."""
    for name in own:
        theirs = name
        for pattern, replacement in NAMES.items():
            theirs = re.sub(pattern, replacement, theirs)
        if ".attn_pool.q." in name:
            yield Link((name, name.replace(".q.", ".kv.")), (theirs,))
        elif ".attn_pool.kv." not in name:
            parts = tuple(theirs.replace("*", part) for part in "qkv") if "*" in theirs else (theirs,)
            yield Link((name,), parts, transposed=theirs.endswith("_projection.weight"))


def to_open_clip(weights: Mapping[str, Tensor], shapes: Shapes, source: str) -> Weights:
    """The weights of an open_clip model, of the shapes in `shapes`, from those of a transformers model."""
    used, result = set[str](), Weights()
    for link in links(shapes):
        if missing := [name for name in link.theirs if name not in weights]:
            raise UserError(f"the weights of {source} have no {missing[0]}")
        used.update(link.theirs)
        theirs = [weights[name] for name in link.theirs]
        if link.own[0].endswith("patch_embed.proj.weight") and theirs[0].ndim == 2:
            theirs = [_patches(theirs[0], shapes[link.own[0]])]
        result |= _moved(theirs, link.own, shapes, link.transposed, source)
    foreign = sorted(name for name in weights if name not in used and not name.endswith("position_ids"))
    if foreign:
        raise UserError(f"the weights of {source} have {len(foreign)} unknown names, e.g. {foreign[0]}")
    return result


def to_transformers(weights: Mapping[str, Tensor], shapes: Shapes) -> Weights:
    """The weights of a transformers model, of the shapes in `shapes`, from those of an open_clip model."""
    result = Weights()
    for link in links(weights):
        if unknown := [name for name in link.theirs if name not in shapes]:
            raise UserError(
                f"transformers has no place for {link.own[0]} of this model: it has no {unknown[0]}"
            )
        own = [weights[name] for name in link.own]
        result |= _moved(own, link.theirs, shapes, link.transposed, "this model")
    if missing := [name for name in shapes if name not in result and not name.endswith("position_ids")]:
        raise UserError(f"this model has no weights for {missing[0]} of transformers' model")
    return result


def _moved(
    tensors: list[Tensor], names: tuple[str, ...], shapes: Shapes, transposed: bool, source: str
) -> Weights:
    whole = torch.cat(tensors) if len(tensors) > 1 else tensors[0]
    whole = whole.T if transposed else whole
    first, *rest = names
    expected = torch.cat([shapes[name] for name in names]) if rest else shapes[first]
    if expected.squeeze().shape != whole.squeeze().shape:  # a scale is a number here and a list of one there
        raise UserError(f"the weights of {source} do not fit its config: {first} has another shape")
    parts = whole.reshape(-1).split([shapes[name].numel() for name in names])
    return {name: part.reshape(shapes[name].shape) for name, part in zip(names, parts, strict=True)}


def _patches(weight: Tensor, expected: Tensor) -> Tensor:
    """The linear map of flattened patches (rows, columns, channels), as a convolution (channels, rows, columns)."""
    width, channels, rows, columns = expected.shape
    if weight.numel() != expected.numel():
        return weight
    return weight.reshape(width, rows, columns, channels).permute(0, 3, 1, 2)
