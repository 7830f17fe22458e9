"""Names of the same weights in open_clip and in transformers.

Both hold the same numbers; queries, keys and values are one tensor here and three there, and projections are
transposed. A `Link` is one such correspondence, used in both directions, so that a round trip is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.weights import Weights

Shapes = Mapping[str, Tensor]  # tensors of which only names and shapes matter


class Link(NamedTuple):
    """Tensors of open_clip that hold the numbers of tensors of transformers, concatenated along the first axis."""

    own: tuple[str, ...]
    theirs: tuple[str, ...]
    transposed: bool = False


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
        own = [weights[name] for name in link.own]
        result |= _moved(own, link.theirs, shapes, link.transposed, "this model")
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


def links(own: Shapes) -> Iterator[Link]:
    """All correspondences of an open_clip model with these weights, a CLIP or a SigLIP, which has an image trunk."""
    yield Link(("logit_scale",), ("logit_scale",))
    prefix = "text." if "text.ln_final.weight" in own else ""
    yield Link((f"{prefix}token_embedding.weight",), ("text_model.embeddings.token_embedding.weight",))
    yield Link((f"{prefix}positional_embedding",), ("text_model.embeddings.position_embedding.weight",))
    yield from _blocks(own, f"{prefix}transformer.resblocks", "text_model")
    yield from _module(f"{prefix}ln_final", "text_model.final_layer_norm")
    if "visual.trunk.pos_embed" in own:
        yield Link(("logit_bias",), ("logit_bias",))
        yield from _module(f"{prefix}text_projection", "text_model.head")
        yield from _siglip_image(own)
    else:
        yield Link((f"{prefix}text_projection",), ("text_projection.weight",), transposed=True)
        yield from _clip_image(own)


def _clip_image(own: Shapes) -> Iterator[Link]:
    theirs = "vision_model.embeddings"
    yield Link(("visual.class_embedding",), (f"{theirs}.class_embedding",))
    yield Link(("visual.conv1.weight",), (f"{theirs}.patch_embedding.weight",))
    yield Link(("visual.positional_embedding",), (f"{theirs}.position_embedding.weight",))
    yield from _module("visual.ln_pre", "vision_model.pre_layrnorm")
    yield from _blocks(own, "visual.transformer.resblocks", "vision_model")
    yield from _module("visual.ln_post", "vision_model.post_layernorm")
    yield Link(("visual.proj",), ("visual_projection.weight",), transposed=True)


def _siglip_image(own: Shapes) -> Iterator[Link]:
    pool, head = "visual.trunk.attn_pool", "vision_model.head"
    yield from _module("visual.trunk.patch_embed.proj", "vision_model.embeddings.patch_embedding")
    yield Link(("visual.trunk.pos_embed",), ("vision_model.embeddings.position_embedding.weight",))
    yield from _blocks(own, "visual.trunk.blocks", "vision_model")
    yield from _module("visual.trunk.norm", "vision_model.post_layernorm")
    yield Link((f"{pool}.latent",), (f"{head}.probe",))
    for kind in ("weight", "bias"):
        yield Link((f"{pool}.q.{kind}", f"{pool}.kv.{kind}"), (f"{head}.attention.in_proj_{kind}",))
    yield from _module(f"{pool}.proj", f"{head}.attention.out_proj")
    yield from _module(f"{pool}.norm", f"{head}.layernorm")
    yield from _module(f"{pool}.mlp.fc1", f"{head}.mlp.fc1")
    yield from _module(f"{pool}.mlp.fc2", f"{head}.mlp.fc2")


# Modules of a block: in open_clip, in timm, in transformers.
BLOCK = (
    ("ln_1", "norm1", "layer_norm1"),
    ("attn.out_proj", "attn.proj", "self_attn.out_proj"),
    ("ln_2", "norm2", "layer_norm2"),
    ("mlp.c_fc", "mlp.fc1", "mlp.fc1"),
    ("mlp.c_proj", "mlp.fc2", "mlp.fc2"),
)


def _blocks(own: Shapes, prefix: str, tower: str) -> Iterator[Link]:
    timm = prefix.endswith(".blocks")
    count = len(
        {name.removeprefix(f"{prefix}.").split(".")[0] for name in own if name.startswith(f"{prefix}.")}
    )
    for i in range(count):
        block, layer = f"{prefix}.{i}", f"{tower}.encoder.layers.{i}"
        for open_clip_name, timm_name, theirs in BLOCK:
            yield from _module(f"{block}.{timm_name if timm else open_clip_name}", f"{layer}.{theirs}")
        for kind in ("weight", "bias"):
            packed = f"{block}.attn.qkv.{kind}" if timm else f"{block}.attn.in_proj_{kind}"
            yield Link((packed,), tuple(f"{layer}.self_attn.{part}_proj.{kind}" for part in "qkv"))


def _module(own: str, theirs: str) -> Iterator[Link]:
    for kind in ("weight", "bias"):
        yield Link((f"{own}.{kind}",), (f"{theirs}.{kind}",))
