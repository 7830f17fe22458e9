"""The layers of a vision tower and what they put out, one vector an image, for every tower of open_clip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

# Where towers keep their blocks or stages: open_clip's own transformer, then what timm's models call them.
PLACES = (
    ("transformer.resblocks", "block"),
    ("trunk.blocks", "block"),
    ("trunk.stages", "stage"),
    ("trunk.layers", "stage"),
)
RESNET = ("layer1", "layer2", "layer3", "layer4")
PROJECTION = "projection"


def vision_layers(tower: nn.Module) -> dict[str, nn.Module]:
    """Blocks or stages in order, and last the tower itself, whose output is the image's embedding."""
    modules = dict(tower.named_modules())
    if all(name in modules for name in RESNET):
        found = {f"stage {i}": modules[name] for i, name in enumerate(RESNET, 1)}
        return {**found, PROJECTION: tower}
    for place, word in PLACES:
        if place in modules:
            blocks = enumerate(modules[place].children(), 1)
            return {**{f"{word} {i}": block for i, block in blocks}, PROJECTION: tower}
    return {PROJECTION: tower}


@contextmanager
def watched(tower: nn.Module) -> Iterator[dict[str, Float[Tensor, "n d"]]]:
    """What each layer put out in the newest forward pass, averaged over positions."""
    seen: dict[str, Tensor] = {}
    order = _order(tower)

    def hook(name: str) -> Any:
        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            seen[name] = pooled(output, order)

        return keep

    handles = [module.register_forward_hook(hook(name)) for name, module in vision_layers(tower).items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def pooled(output: Any, order: str = "first") -> Float[Tensor, "n d"]:
    """The mean over tokens or places of [n, l, d] or [n, c, h, w].

    `order` says where the batch or the channels are instead: "second" for [l, n, d], "last" for [n, h, w, c].
    """
    value: Tensor = output[0] if isinstance(output, tuple | list) else output
    if value.ndim == 3:
        return value.mean(dim=0 if order == "second" else 1)
    if value.ndim == 4:
        return value.mean(dim=(1, 2) if order == "last" else (2, 3))
    return value


def _order(tower: nn.Module) -> str:
    """Where a tower keeps the batch, or the channels, when not where everybody expects them."""
    modules = dict(tower.named_modules())
    if not getattr(modules.get("transformer"), "batch_first", True):
        return "second"
    return "last" if getattr(modules.get("trunk"), "output_fmt", None) == "NHWC" else "first"
