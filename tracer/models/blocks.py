"""The blocks or stages of the towers, for every tower of open_clip, and the tokens of vision towers."""

from __future__ import annotations

import math
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn

from tracer.core.errors import UserError

# Modules that hold the blocks or stages: open_clip's own transformer, timm's models, text towers of Hugging Face.
CONTAINERS = {
    "transformer.resblocks": "block",
    "trunk.blocks": "block",
    "trunk.stages": "stage",
    "trunk.layers": "stage",
    "transformer.encoder.layer": "block",
    "transformer.encoder.block": "block",
}
RESNET = ("layer1", "layer2", "layer3", "layer4")
PATCHES = ("conv1", "trunk.patch_embed", "trunk.stem")  # open_clip's transformer, timm's, timm's ConvNeXt

Order = Literal["first", "second", "last"]  # [n, l, d] or [n, c, h, w]; [l, n, d]; [n, h, w, c]


def tower_blocks(tower: nn.Module) -> dict[str, nn.Module]:
    """Blocks or stages of an image or text tower in order; empty for a tower of another kind."""
    modules = dict(tower.named_modules())
    if all(name in modules for name in RESNET):
        return {f"stage {i}": modules[name] for i, name in enumerate(RESNET, 1)}
    for container, kind in CONTAINERS.items():
        if container in modules:
            return {f"{kind} {i}": block for i, block in enumerate(modules[container].children(), 1)}
    return {}


def patch_embedding(tower: nn.Module) -> nn.Module | None:
    """The layer that makes patches into tokens; None for ResNets and towers of another kind."""
    modules = dict(tower.named_modules())
    if RESNET[0] in modules:
        return None
    return next((modules[name] for name in PATCHES if name in modules), None)


def token_order(tower: nn.Module) -> Order:
    """The order of dimensions of the outputs of a tower's blocks."""
    modules = dict(tower.named_modules())
    if not getattr(modules.get("transformer"), "batch_first", True):
        return "second"
    return "last" if getattr(modules.get("trunk"), "output_fmt", None) == "NHWC" else "first"


def as_tokens(output: Any, order: Order = "first") -> Float[Tensor, "n l d"]:
    """A block's output as tokens; the positions of a feature map are its tokens, a single vector is one."""
    value: Tensor = output[0] if isinstance(output, tuple | list) else output
    if value.ndim == 4:
        return value.flatten(1, 2) if order == "last" else value.flatten(2).transpose(1, 2)
    if value.ndim == 3:
        return value.transpose(0, 1) if order == "second" else value
    return value[:, None]


def five_taps(
    tower: nn.Module, pixels: Float[Tensor, "n 3 h w"]
) -> tuple[Float[Tensor, "n d"], tuple[Tensor, ...]]:
    """Image features, and all tokens before the first block and after each quarter of the blocks.

    These are the taps of LDIFS: for twelve blocks, before the first and after the 3rd, 6th, 9th and 12th.
    """
    blocks = list(tower_blocks(tower).values())
    if not blocks:
        raise UserError(
            "this model's image tower has no blocks whose tokens could be compared: use flyp or ft"
        )
    taps: dict[int, Any] = {}

    def keep(index: int) -> Any:  # only kept here: work inside a checkpointed block would have to be repeated
        return lambda module, inputs, output=None: taps.update({index: inputs if output is None else output})

    handles = [blocks[0].register_forward_pre_hook(keep(0))]
    for quarter in (1, 2, 3, 4):
        index = math.ceil(len(blocks) * quarter / 4)
        handles.append(blocks[index - 1].register_forward_hook(keep(index)))
    try:
        output = tower.forward(pixels)
    finally:
        for handle in handles:
            handle.remove()
    order = token_order(tower)
    features = output[0] if isinstance(output, tuple | list) else output
    return features, tuple(as_tokens(taps[index], order) for index in sorted(taps))
