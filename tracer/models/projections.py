"""The matrices with which the towers end, in the space of the shared embedding."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from tracer.models.text import text_tower

PROJECTIONS = {
    "image": ("proj", "attnpool.c_proj", "head.proj", "trunk.head", "trunk.head.fc"),
    "text": ("text_projection", "proj"),
}


def projections(clip: Any) -> tuple[Float[Tensor, "v d"], Float[Tensor, "t d"]] | None:
    """The projection matrix of each tower, with the shared embedding as columns; None if a tower has none."""
    image, text = _projection(clip, "image"), _projection(clip, "text")
    return None if image is None or text is None else (image, text)


def without_projection(clip: Any) -> list[str]:
    """The towers, "image" and "text", that end without a linear projection."""
    return [tower for tower in PROJECTIONS if _projection(clip, tower) is None]


def _projection(clip: Any, tower: str) -> Tensor | None:
    for path in PROJECTIONS[tower]:
        part = clip.visual if tower == "image" else text_tower(clip)
        for name in path.split("."):
            part = getattr(part, name, None)
        if isinstance(part, nn.Linear):
            return part.weight.T
        if isinstance(part, Tensor) and part.ndim == 2:
            return part
    return None
