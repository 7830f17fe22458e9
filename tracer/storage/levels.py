"""Images of more than eight bits: the range of their values, one white for all of a data set, and how they are seen."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import PHOTOMETRIC_INTERPRETATION, TiffImageFile

DEEP = ("I", "F")  # modes of more than eight bits, beside those that begin with I;16
WHITE_IS_ZERO = 0  # in TIFF
LEVELS = (1, 3, 7, 15, 31, 63, 127, 255, 1023, 4095, 16383, 65535)  # of 8, 10, 12, 14 and 16 bits, and below
OVERSHOOT = 1.25  # of values up to 1, as resampling leaves it; what is above 1 is cut


class Range(NamedTuple):
    """The values of an image of more than eight bits: lowest, highest, and the mean with negative ones as 0."""

    lowest: float
    highest: float
    mean: float


def is_deep(image: Image.Image) -> bool:
    """Whether an image is grey with more than eight bits."""
    return image.mode.startswith("I;16") or image.mode in DEEP


def value_range(image: Image.Image) -> Range | None:
    """The range of the values of an image; None if it has eight bits. Those that are no numbers count as 0."""
    if has_two_bytes(image):  # of which Pillow keeps the upper one: that says the number of bits
        with _again(image) as own:
            upper = np.asarray(own)[..., :3]
        return Range(256.0 * upper.min(), 256.0 * upper.max() + 255, 256.0 * float(upper.mean()))
    if not is_deep(image):
        return None
    values = np.nan_to_num(np.asarray(image, np.float64), posinf=0.0, neginf=0.0)
    return Range(float(values.min()), float(values.max()), float(values.clip(min=0).mean()))


def white_level(ranges: Iterable[Range]) -> float | None:
    """The white of all images of a data set: the largest value of as many bits as the largest of them needs.

    Values up to 1 have 1. None if no image has more than eight bits.
    """
    highest = max((each.highest for each in ranges), default=None)
    if highest is None:
        return None
    if highest <= OVERSHOOT:
        return 1.0
    return float(next((level for level in LEVELS if highest <= level), 2 ** int(highest).bit_length() - 1))


def grey(image: Image.Image, white: float | None) -> Image.Image:
    """Eight bits of an image of more, as seen on white."""
    values = np.asarray(image)
    shown = _eight_bits(values, white or (1.0 if image.mode == "F" else 65535.0))
    if isinstance(image, TiffImageFile) and image.tag_v2.get(PHOTOMETRIC_INTERPRETATION) == WHITE_IS_ZERO:
        shown = 255 - shown  # as Pillow does with eight bits
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        shown[values == clear] = 255
    return Image.fromarray(shown)


def _eight_bits(values: np.ndarray, white: float) -> np.ndarray:
    scaled = np.nan_to_num(values.astype(np.float64), posinf=white, neginf=0.0) / white
    return np.rint(scaled.clip(0, 1) * 255).astype(np.uint8)


def _layout(image: Image.Image) -> str:
    """How the pixels of a file that is not decoded yet are stored, in Pillow's words; empty if that is not known."""
    tiles = image.tile if isinstance(image, ImageFile) else ()
    arguments = tiles[0][3] if tiles else ""
    return str(arguments[0] if isinstance(arguments, tuple) and arguments else arguments)


def has_two_bytes(image: Image.Image) -> bool:
    """Whether an image that is not decoded yet has sixteen bits a colour, of which Pillow keeps eight."""
    return image.mode in ("RGB", "RGBA") and ";16" in _layout(image)


def from_both_bytes(image: Image.Image, white: float | None) -> Image.Image:
    """An image with sixteen bits a colour as one of eight bits, made of both bytes where one is not enough.

    It is then decoded a second time with their order exchanged, since Pillow keeps the first. Other images as they are.
    """
    layout, clear = _layout(image), image.info.get("transparency")
    if not has_two_bytes(image):
        return image
    if white in (None, 65535.0) and clear is None:
        return _again(image)
    with _again(image) as own:
        values = np.asarray(own).astype(np.uint16) * 256
    if layout[:-1] == f"{image.mode};16":
        other = layout[:-1] + {"B": "L", "L": "B"}.get(layout[-1], "B" if sys.byteorder == "little" else "L")
        with _again(image) as own:
            tiles: Any = [(*tile[:3], _exchanged(tile[3], other)) for tile in own.tile]
            own.tile = tiles
            values += np.asarray(own)
    pixels = _eight_bits(values[..., :3], white or 65535.0)
    if isinstance(clear, tuple):
        alpha = np.where((values == clear).all(axis=-1), 0, 255).astype(np.uint8)
    else:
        alpha = (values // 256).astype(np.uint8)[..., 3] if image.mode == "RGBA" else None
    shown = Image.fromarray(pixels if alpha is None else np.dstack([pixels, alpha]))
    # Pillow turns a TIFF while it decodes it: what says how to turn it does not count again.
    kept = ("icc_profile",) if image.format == "TIFF" else set(image.info) - {"transparency"}
    shown.info = {name: image.info[name] for name in kept if name in image.info}
    return shown


def _again(image: Image.Image) -> ImageFile:
    """An image that is not decoded yet, opened once more: decoding it leaves the first one as it is."""
    assert isinstance(image, ImageFile)
    assert image.fp is not None
    place = image.fp.tell()
    image.fp.seek(0)
    encoded = BytesIO(image.fp.read())
    image.fp.seek(place)
    again = Image.open(encoded, formats=(image.format or "",))
    assert isinstance(again, ImageFile)
    return again


def _exchanged(arguments: Any, layout: str) -> Any:
    return (layout, *arguments[1:]) if isinstance(arguments, tuple) else layout
