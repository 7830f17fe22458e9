"""The layers of a vision tower and their outputs, one vector per image, for every tower of open_clip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from tracer.models.blocks import Order, as_tokens, patch_embedding, token_order, tower_blocks

PATCHES, PROJECTION = "patch embedding", "projection"


def vision_layers(tower: nn.Module) -> dict[str, nn.Module]:
    """The patch embedding, blocks or stages in order, then the tower itself, whose output is the image's embedding."""
    patches = patch_embedding(tower)
    first = {} if patches is None else {PATCHES: patches}
    return {**first, **tower_blocks(tower), PROJECTION: tower}


@contextmanager
def layer_outputs(tower: nn.Module) -> Iterator[dict[str, Float[Tensor, "n d"]]]:
    """A dict that every forward pass fills with the outputs of the layers, averaged over positions."""
    outputs: dict[str, Tensor] = {}
    order = token_order(tower)

    def hook(name: str) -> Any:
        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            # The convolution of open_clip's patch embedding gives a map [n, c, h, w] whatever comes after it.
            outputs[name] = pooled(output, "first" if isinstance(module, nn.Conv2d) else order)

        return keep

    handles = [module.register_forward_hook(hook(name)) for name, module in vision_layers(tower).items()]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def pooled(output: Any, order: Order = "first") -> Float[Tensor, "n d"]:
    """The mean over tokens or positions."""
    return as_tokens(output, order).mean(dim=1)
