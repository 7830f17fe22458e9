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
    module = clip.visual if tower == "image" else text_tower(clip)
    matrices = (_matrix(_path(module, dotted)) for dotted in PROJECTIONS[tower])
    return next((matrix for matrix in matrices if matrix is not None), None)


def _path(module: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        module = getattr(module, name, None)
    return module


def _matrix(map_: Any) -> Tensor | None:
    if isinstance(map_, nn.Linear):
        return map_.weight.T
    return map_ if isinstance(map_, Tensor) and map_.ndim == 2 else None
