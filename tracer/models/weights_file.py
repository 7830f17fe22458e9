"""Weights in a file, which does not say how they want their images and whether they need QuickGELU."""

from __future__ import annotations

from typing import Any

from tracer.core.errors import UserError, unknown
from tracer.models.open_clip_compat import open_clip

PIXELS = ("mean", "std", "interpolation", "resize_mode")


def published_settings(model: str, file: str, tag: str = "") -> tuple[bool, dict[str, Any] | None]:
    """Whether the weights in `file` need QuickGELU, and how they want their images; None: as usual.

    They are taken to be like the published weights `tag`, by default like all those of the model. Raises UserError,
    with the tags to choose from, where these differ.
    """
    tags = open_clip.list_pretrained_tags_by_model(model)
    if tag and tag not in tags:
        raise unknown(f"weights of {model}", tag, tags)
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for each in [tag] if tag else tags:
        published = open_clip.get_pretrained_cfg(model, each)
        kind = (bool(published.get("quick_gelu")), *(published.get(key) for key in PIXELS))
        kinds.setdefault(kind, []).append(each)
    if len(kinds) > 1:
        choices = "; ".join(f"@{alike[0]} (and {len(alike) - 1} more)" for alike in kinds.values())
        raise UserError(
            f"{file} does not say which weights of {model} it is like, and those differ in pixels or activation: give "
            f"--pretrained {file}@TAG, with TAG one of {choices}"
        )
    quick, *pixels = next(iter(kinds), (False, *[None] * len(PIXELS)))
    preprocess = {key: value for key, value in zip(PIXELS, pixels, strict=True) if value is not None}
    return quick, preprocess or None
