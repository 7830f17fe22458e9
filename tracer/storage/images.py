"""From an image to the pixels of a model: eight-bit RGB, as a viewer shows the picture.

All images come through `read` or, where Pillow has opened them already, through `seen`: turned as their EXIF says, in
sRGB whatever their colour profile, on white where they are transparent, and of an animation the first frame. Images of
more than eight bits have no white of their own: all of a data set are shown with one, its `white_level`.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import NamedTuple

import numpy as np
from PIL import ExifTags, Image, ImageCms, features
from PIL.TiffImagePlugin import TiffImageFile

from tracer.storage.levels import Range, from_both_bytes, grey, has_two_bytes, is_deep, value_range

# Beside the limit above which Pillow refuses an image there is one above which it warns, of an attack.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

# Formats by content, whatever a file is called: Pillow would hand PostScript to an external program.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
HEIC = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}  # brands of ISO 23008-12
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm"),
        *(".avif", ".heic", ".heif"),
    )
)
READING = 2  # how files become pixels; part of what identifies data, and counted up when their pixels change

# Raised by Pillow's decoders on damaged files; a wrong header can cause almost any error.
BROKEN = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, RuntimeError, MemoryError, struct.error, zlib.error, Image.DecompressionBombError),
)

TRANSPARENT = ("RGBA", "RGBa", "LA", "La", "PA")
TURNS = {  # by the number in EXIF
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
METADATA = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")  # that may hold the orientation
ON_ITS_SIDE = (5, 6, 7, 8)
FROM_THE_RIGHT, FROM_BELOW = (
    (2, 3, 6, 7),
    (3, 4, 7, 8),
)  # where an image ends that was stored from its other end

SPACES = {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK"}  # of the profiles of each mode
SAME = 2  # of 255 levels: a profile that changes no colour by more is sRGB itself


class Draft(NamedTuple):
    """An image as it is seen, its whole size, and by what decoding reduced it.

    Its first column and row begin `start` pixels inside of the reduced image.
    """

    image: Image.Image
    stored: tuple[int, int]
    times: int = 1
    start: tuple[float, float] = (0.0, 0.0)


def read(encoded: bytes, white: float | None = None, least: tuple[int, int] | None = None) -> Draft:
    """An image file as a viewer shows it; a JPEG at 1/2, 1/4 or 1/8 of its size if that leaves `least` pixels.

    `white` is the value that is shown as white in an image of more than eight bits, by default the largest of its kind.
    Raises one of BROKEN for what cannot be read.
    """
    with _opened(encoded) as image:
        stored, times, turn = image.size, 1, 1
        if least is not None and image.format in ("JPEG", "MPO"):
            turn = _orientation(image)
            drafted = image.draft(None, least[::-1] if turn in ON_ITS_SIDE else least)
            times = round(stored[0] / drafted[1][2]) if drafted else 1
        shown = seen(image, white)
    if times == 1:
        return Draft(shown, shown.size)
    width, height = stored[::-1] if turn in ON_ITS_SIDE else stored
    right, below = shown.width - width / times, shown.height - height / times
    start = (right if turn in FROM_THE_RIGHT else 0.0, below if turn in FROM_BELOW else 0.0)
    return Draft(shown, (width, height), times, start)


def seen(image: Image.Image, white: float | None = None) -> Image.Image:
    """An image that Pillow has opened, as a viewer shows it: RGB, with nothing left to apply.

    See `read`; the image itself is not changed, and what is returned is its own picture.
    """
    image = from_both_bytes(image, white)
    image.load()  # first: in PNG, EXIF may come last
    turn = TURNS.get(_orientation(image))
    shown = _colours(image, white)
    if turn is not None:
        shown = shown.transpose(turn)
    shown.info = {}  # else the orientation and the profile would be applied again
    return shown


def measure(encoded: bytes) -> Range | None:
    """Decode all of an image, to see whether that works; JPEG at an eighth of its size, for speed.

    Returns the range of its values if it has more than eight bits. Raises one of BROKEN for what cannot be read.
    """
    if not encoded:
        raise OSError("the file is empty")
    with _opened(encoded) as image:
        image.draft(None, (max(1, image.width // 8), max(1, image.height // 8)))
        values = value_range(image)
        image.load()
        return values


def range_of_file(encoded: bytes) -> Range | None:
    """What `measure` returns, without decoding images of eight bits."""
    with _opened(encoded) as image:
        deep = is_deep(image) or has_two_bytes(image)
    return measure(encoded) if deep else None


def reason(error: BaseException) -> str:
    """A short message for an exception of the image library."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, Image.DecompressionBombError):
        pixels = next((word.strip("(") for word in str(error).split() if word.strip("(").isdigit()), "")
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        size = f"it has {int(pixels):,} pixels" if pixels else "it is too large"
        return f"{size}, and at most {limit:,} are read: make it smaller"
    if isinstance(error, Image.UnidentifiedImageError):
        return "it is no image of a known kind"
    return str(error) or type(error).__name__


def _opened(encoded: bytes) -> Image.Image:
    """The image in a file, not yet decoded; an OSError that names the decoder if there is none for its kind."""
    if encoded[4:8] != b"ftyp":
        return Image.open(BytesIO(encoded), formats=FORMATS)
    size = min(int.from_bytes(encoded[:4], "big"), 256)
    brands = {encoded[i : i + 4] for i in range(8, size, 4)}
    if brands & {b"avif", b"avis"}:
        if not features.check("avif"):
            raise OSError("it is AVIF, which this Pillow does not decode: pip install --upgrade pillow")
        return Image.open(BytesIO(encoded), formats=("AVIF",))
    if brands & HEIC:
        try:
            import_module("pillow_heif").register_heif_opener()
        except ImportError:
            raise OSError("it is HEIC, which needs a decoder: pip install pillow-heif") from None
        return Image.open(BytesIO(encoded), formats=("HEIF",))
    raise Image.UnidentifiedImageError


def _orientation(image: Image.Image) -> int:
    """The number of the orientation in EXIF, or in XMP where there is none; 1 if it means nothing, or in TIFF, which
    Pillow turns while it decodes."""
    number = 1
    if isinstance(image, TiffImageFile) or not any(name in image.info for name in METADATA):
        return number
    with suppress(*BROKEN):
        number = image.getexif().get(ExifTags.Base.Orientation, 1)
    return number if number in TURNS else 1


def _colours(image: Image.Image, white: float | None) -> Image.Image:
    """A loaded image as RGB in sRGB on white, not turned; always another image."""
    profile = image.info.get("icc_profile")
    if is_deep(image):
        return _in_srgb(grey(image, white), profile)
    if image.mode not in TRANSPARENT and "transparency" not in image.info:
        return _in_srgb(image, profile)
    if image.mode == "La":  # of which Pillow makes nothing but this
        image = image.convert("LA")
    rgba = image.convert("RGBA")
    colours = _in_srgb(image.getchannel("L") if image.mode == "LA" else rgba.convert("RGB"), profile)
    colours.putalpha(rgba.getchannel("A"))
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), colours).convert("RGB")


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """A copy of an image without transparency, in RGB, its colours as its profile means them."""
    image = image if image.mode in SPACES else image.convert("RGB")
    transform = _transform(profile, image.mode) if profile else None
    return image.convert("RGB") if transform is None else transform.apply(image)


@lru_cache(maxsize=16)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """From the colours of a profile to sRGB; None if they are the same, or if the profile does not fit or is broken."""
    steps = np.linspace(0, 255, 17, dtype=np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(17, -1, 3)
    try:
        own = ImageCms.ImageCmsProfile(BytesIO(profile))
        if own.profile.xcolor_space.strip() != SPACES[mode]:
            return None
        transform = ImageCms.buildTransform(own, ImageCms.createProfile("sRGB"), mode, "RGB")
        sample = Image.fromarray(cube).convert(mode)
        change = np.asarray(transform.apply(sample), int) - np.asarray(sample.convert("RGB"), int)
    except (ImageCms.PyCMSError, ImportError, *BROKEN):
        return None
    return None if mode != "CMYK" and abs(change).max() <= SAME else transform
