"""Similarity of two models, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Num
from torch import Tensor

from tracer.analysis.cka import linear_cka
from tracer.analysis.layers import layer_outputs
from tracer.analysis.moments import Moments
from tracer.analysis.svcca import svcca
from tracer.models.student import Student


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
    modes = (first.training, second.training)
    first.eval()
    second.eval()
    try:
        with layer_outputs(first.image_tower) as one, layer_outputs(second.image_tower) as two:
            for images in batches:
                first.embed_image(images)
                second.embed_image(images)
                for layer, features in one.items():
                    moments.setdefault(layer, Moments()).add(features, two[layer])
    finally:
        first.train(modes[0])
        second.train(modes[1])
    return [LayerSimilarity(layer, linear_cka(each), svcca(each, keep)) for layer, each in moments.items()]
