"""What happens to images before the model, in the words of transformers and of open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracer.core.errors import UserError
from tracer.models.config_check import check_preprocess_config

RESAMPLING = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers
FAMILY_DEFAULTS = {
    "clip": {
        "image_mean": (0.48145466, 0.4578275, 0.40821073),
        "image_std": (0.26862954, 0.26130258, 0.27577711),
        "size": {"shortest_edge": 224},
        "do_center_crop": True,
        "resample": 3,
    },
    "siglip": {
        "image_mean": (0.5, 0.5, 0.5),
        "image_std": (0.5, 0.5, 0.5),
        "size": {"height": 224, "width": 224},
        "do_center_crop": False,
        "resample": 3,
    },
}


def preprocess_config(config: Mapping[str, Any], family: str, size: int, source: str) -> dict[str, Any]:
    """open_clip's preprocess_cfg of an image processor of transformers, for a model of images of `size` pixels."""
    defaults = FAMILY_DEFAULTS["siglip" if family == "siglip2" else family]
    stated = {**defaults, **{name: value for name, value in config.items() if value is not None}}
    if family == "siglip2":  # keeps the aspect ratio there; here the square for which positions are stored
        stated |= {"size": {"height": size, "width": size}, "resample": config.get("resample", 2)}
    for name in ("do_resize", "do_rescale", "do_normalize"):
        if stated.get(name, True) is not True:
            raise UserError(f"{source}: {name} is {stated[name]!r:.60}, and only true can be followed")
    factor = stated.get("rescale_factor", 1 / 255)
    if not isinstance(factor, int | float) or abs(255 * factor - 1) > 1e-6:
        raise UserError(f"{source}: rescale_factor is 1/255, not {factor!r:.60}")
    if stated["resample"] not in tuple(RESAMPLING):  # a list has no hash
        raise UserError(f"{source}: resample is 2 (bilinear) or 3 (bicubic), not {stated['resample']!r:.60}")
    result: dict[str, Any] = {
        "size": (size, size),
        "mode": "RGB",
        "mean": stated["image_mean"],
        "std": stated["image_std"],
        "interpolation": RESAMPLING[stated["resample"]],
        "resize_mode": _resize_mode(stated, size, source),
        "fill_color": 0,
    }
    check_preprocess_config(result, source)
    return result | {"mean": tuple(result["mean"]), "std": tuple(result["std"])}


def _resize_mode(stated: Mapping[str, Any], size: int, source: str) -> str:
    """shortest: the shorter side to `size`, then the centre; squash: both sides to `size`."""
    edges = stated["size"]
    if isinstance(edges, int):  # of first versions: the shorter side where a crop follows
        edges = {"shortest_edge": edges} if stated["do_center_crop"] else {"height": edges, "width": edges}
    crop = stated.get("crop_size", size) if stated["do_center_crop"] else size
    fits = all(side == size for side in (crop.values() if isinstance(crop, Mapping) else [crop]))
    if edges == {"height": size, "width": size} and fits:
        return "squash"
    if edges == {"shortest_edge": size} and fits and stated["do_center_crop"]:
        return "shortest"
    raise UserError(
        f"{source}: images of {edges!r:.60}, cropped to {crop!r:.60}, do not become {size} pixels wide"
    )


def image_processor_config(preprocess: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Settings of transformers' image processor that do what open_clip's preprocess_cfg says."""
    numbers = {name: number for number, name in RESAMPLING.items()}
    mode = preprocess.get("resize_mode", "shortest")
    interpolation = preprocess.get("interpolation", "bicubic")
    if mode not in ("shortest", "squash") or interpolation not in numbers:
        raise UserError(f"transformers' image processors cannot resize with {mode} and {interpolation}")
    square = {"height": size, "width": size}
    return {
        "do_resize": True,
        "do_rescale": True,
        "do_normalize": True,
        "do_convert_rgb": True,
        "size": {"shortest_edge": size} if mode == "shortest" else square,
        "resample": numbers[interpolation],
        "do_center_crop": mode == "shortest",
        "crop_size": square,
        "image_mean": list(preprocess["mean"]),
        "image_std": list(preprocess["std"]),
    }
