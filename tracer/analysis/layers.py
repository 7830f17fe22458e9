"""The layers of a vision tower and their outputs, one vector per image, for every tower of open_clip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

# Modules that hold the blocks or stages: open_clip's own transformer, then timm's models.
CONTAINERS = (
    ("transformer.resblocks", "block"),
    ("trunk.blocks", "block"),
    ("trunk.stages", "stage"),
    ("trunk.layers", "stage"),
)
RESNET = ("layer1", "layer2", "layer3", "layer4")
PROJECTION = "projection"


def vision_layers(tower: nn.Module) -> dict[str, nn.Module]:
    """Blocks or stages in order, then the tower itself, whose output is the image's embedding."""
    modules = dict(tower.named_modules())
    if all(name in modules for name in RESNET):
        stages = {f"stage {i}": modules[name] for i, name in enumerate(RESNET, 1)}
        return {**stages, PROJECTION: tower}
    for container, kind in CONTAINERS:
        if container in modules:
            blocks = enumerate(modules[container].children(), 1)
            return {**{f"{kind} {i}": block for i, block in blocks}, PROJECTION: tower}
    return {PROJECTION: tower}


@contextmanager
def layer_outputs(tower: nn.Module) -> Iterator[dict[str, Float[Tensor, "n d"]]]:
    """A dict that every forward pass fills with the outputs of the layers, averaged over positions."""
    outputs: dict[str, Tensor] = {}
    order = _order(tower)

    def hook(name: str) -> Any:
        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            outputs[name] = pooled(output, order)

        return keep

    handles = [module.register_forward_hook(hook(name)) for name, module in vision_layers(tower).items()]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def pooled(output: Any, order: str = "first") -> Float[Tensor, "n d"]:
    """The mean over tokens or positions of [n, l, d] or [n, c, h, w].

    `order` "second" means [l, n, d], "last" means [n, h, w, c].
    """
    value: Tensor = output[0] if isinstance(output, tuple | list) else output
    if value.ndim == 3:
        return value.mean(dim=0 if order == "second" else 1)
    if value.ndim == 4:
        return value.mean(dim=(1, 2) if order == "last" else (2, 3))
    return value


def _order(tower: nn.Module) -> str:
    """The order of dimensions of a tower's outputs, as `pooled` takes it."""
    modules = dict(tower.named_modules())
    if not getattr(modules.get("transformer"), "batch_first", True):
        return "second"
    return "last" if getattr(modules.get("trunk"), "output_fmt", None) == "NHWC" else "first"
