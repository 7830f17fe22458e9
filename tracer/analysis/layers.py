"""The layers of a vision tower, for every tower of open_clip, and their similarity in two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from tracer.analysis.similarity import Moments, linear_cka, svcca
from tracer.models.student import Student, evaluating
from tracer.models.towers import Order, Tower, as_tokens


class LayerSimilarity(NamedTuple):
    """Similarity of one layer in two models."""

    layer: str
    cka: float
    svcca: float


@torch.no_grad()
def layer_similarity(
    first: Student, second: Student, batches: Iterable[Num[Tensor, "n 3 h w"]], keep: float = 0.99
) -> list[LayerSimilarity]:
    """CKA and SVCCA of every layer over all images of `batches`, in one pass that stores no features."""
    moments: dict[str, Moments] = {}
    with (
        evaluating(first),
        evaluating(second),
        layer_outputs(first.image_tower) as one,
        layer_outputs(second.image_tower) as two,
    ):
        for images in batches:
            first.embed_image(images)
            second.embed_image(images)
            for layer, features in one.items():
                moments.setdefault(layer, Moments()).add(features, two[layer])
    return [LayerSimilarity(layer, linear_cka(each), svcca(each, keep)) for layer, each in moments.items()]


def vision_layers(tower: nn.Module) -> dict[str, nn.Module]:
    """The patch embedding, blocks or stages in order, then the tower itself, whose output is the image's embedding."""
    patches, blocks = Tower("image", tower).patch_embedding, Tower("image", tower).blocks
    first = {} if patches is None else {"patch embedding": patches}
    return {**first, **blocks, "projection": tower}


@contextmanager
def layer_outputs(tower: nn.Module) -> Iterator[dict[str, Float[Tensor, "n d"]]]:
    """A dict that every forward pass fills with the outputs of the layers, averaged over positions."""
    outputs: dict[str, Tensor] = {}
    order = Tower("image", tower).order

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
