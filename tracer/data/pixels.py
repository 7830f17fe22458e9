"""Convert any image to 8-bit RGB."""

from __future__ import annotations

import numpy as np
from PIL import Image

from tracer.core.errors import UserError

TRANSPARENT = ("RGBA", "RGBa", "LA", "La", "PA")


def rgb(image: Image.Image) -> Image.Image:
    """The first frame as RGB. Transparent images are placed on white. 16 bits are scaled to 8, and floating values by
    their maximum: up to 1 (or a little more, which is cut), up to 255, or up to 65535.

    As in open_clip's preprocessing, the EXIF orientation is not applied.
    """
    if image.mode.startswith("I;16"):
        return _grey(image, scale=255 / 65535)
    if image.mode == "F":
        highest = np.nan_to_num(np.asarray(image)).max()
        return _grey(image, scale=255.0 if highest <= 2 else 1.0 if highest <= 255 else 255 / 65535)
    if image.mode == "I":  # 32 bits, of which 8 or, more often, 16 are used
        return _grey(image, scale=255 / 65535 if np.asarray(image).max() > 255 else 1.0)
    if image.mode in TRANSPARENT or "transparency" in image.info:
        opaque = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(opaque, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


def refuse_black(pixels: np.ndarray, where: str) -> None:
    """Raise UserError if bytes are 0 and 1 alone: they count up to 255, so that every image would look black."""
    if pixels.dtype == np.uint8 and pixels.size and pixels.max() == 1:
        raise UserError(f"{where}: the values are 0 and 1, black to the eye: multiply them by 255")


def _grey(image: Image.Image, scale: float) -> Image.Image:
    values = np.nan_to_num(np.asarray(image, np.float64)) * scale
    return Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8)).convert("RGB")
