"""How much two models see alike, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Num
from torch import Tensor

from tracer.analysis.cka import linear_cka
from tracer.analysis.layers import watched
from tracer.analysis.moments import Moments
from tracer.analysis.svcca import svcca
from tracer.models.student import Student


class Likeness(NamedTuple):
    """Similarity of one layer in two models."""

    layer: str
    cka: float
    svcca: float


@torch.no_grad()
def likeness(
    first: Student, second: Student, batches: Iterable[Num[Tensor, "n 3 h w"]], keep: float = 0.99
) -> list[Likeness]:
    """CKA and SVCCA of every layer over all images of `batches`, in one pass and without keeping features."""
    sums: dict[str, Moments] = {}
    modes = (first.training, second.training)
    first.eval()
    second.eval()
    try:
        with watched(first.image_tower) as one, watched(second.image_tower) as two:
            for images in batches:
                first.embed_image(images)
                second.embed_image(images)
                for layer, x in one.items():
                    sums.setdefault(layer, Moments()).add(x, two[layer])
    finally:
        first.train(modes[0])
        second.train(modes[1])
    return [Likeness(layer, linear_cka(seen), svcca(seen, keep)) for layer, seen in sums.items()]
