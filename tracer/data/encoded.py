"""Images stored encoded (JPEG, PNG, …), read and decoded to RGB one at a time on access; hashes of images."""

from __future__ import annotations

import hashlib
import struct
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

import numpy as np
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.examples import Images, Pixels, Subset

# Formats by content, whatever a file is called: Pillow would hand PostScript to an external program.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".avif")
)

TRANSPARENT = ("RGBA", "RGBa", "LA", "La", "PA")
LARGEST = 1 << 30  # bytes of an image file
HASH_SIZE = 16  # bytes of a hash

# Raised by Pillow's decoders on damaged files; a wrong header can cause almost any error.
BROKEN = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, RuntimeError, MemoryError, struct.error, zlib.error, Image.DecompressionBombError),
)


class Draft(NamedTuple):
    """A decoded image, its size in the file, and the factor by which decoding reduced it."""

    image: Image.Image
    stored: tuple[int, int]
    times: int = 1


class Encoded(ABC):
    """Images by index, each decoded from its stored bytes."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def content(self, index: int) -> bytes:
        """The encoded image."""

    @abstractmethod
    def name(self, index: int) -> str:
        """Where it is stored, for messages."""

    @property
    def place(self) -> str | None:
        """The folder of images that are local files; None if they are stored elsewhere."""
        return None

    def file(self, index: int) -> tuple[Path, str]:
        """The local file of an image, and which part of the file it is; only if there is a `place`."""
        raise NotImplementedError

    def __getitem__(self, index: int) -> Image.Image:
        return self.draft(index, None).image

    def draft(self, index: int, least: tuple[int, int] | None) -> Draft:
        """Decode a JPEG at 1/2, 1/4 or 1/8 of its size if that leaves `least` pixels; other images in full."""
        try:
            with Image.open(BytesIO(self.content(index)), formats=FORMATS) as image:
                stored = image.size
                drafted = image.draft(None, least) if least else None  # None for formats without drafts
                times = round(stored[0] / drafted[1][2]) if drafted else 1
                return Draft(rgb(image), stored, times)
        except BROKEN as error:
            raise UserError(f"the image {self.name(index)} cannot be read: {reason(error)}") from error


@dataclass(frozen=True)
class Files(Encoded):
    """Image files, by their paths below (or beside) a root folder."""

    root: Path
    paths: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def content(self, index: int) -> bytes:
        return read_image(self.root / self.paths[index])

    def name(self, index: int) -> str:
        return str(self.root / self.paths[index])

    @property
    def place(self) -> str:
        return str(self.root.absolute())

    def file(self, index: int) -> tuple[Path, str]:
        return self.root.absolute() / self.paths[index], ""


def read_image(path: Path) -> bytes:
    """The bytes of an image file. A pipe or a device, which a table or a link may name, would never end."""
    status = path.stat()
    if not S_ISREG(status.st_mode):
        raise OSError("it is no file")
    if status.st_size > LARGEST:
        raise OSError(f"it has {status.st_size} bytes, too many for an image")
    return path.read_bytes()


def content(images: Images, index: int) -> bytes | None:
    """The encoded bytes of an image; None if it is stored as pixels."""
    images, index = origin(images, index)
    return images.content(index) if isinstance(images, Encoded) else None


def origin(images: Images, index: int) -> tuple[Images, int]:
    """The collection that a subset is taken from, and the index of an image in it."""
    while isinstance(images, Subset):
        images, index = images.images, int(images.indices[index])
    return images, index


def draft(images: Images, index: int, least: tuple[int, int] | None) -> Draft:
    """Decode an image at a reduced size if it is a large JPEG: see `Encoded.draft`."""
    images, index = origin(images, index)
    if isinstance(images, Encoded):
        return images.draft(index, least)
    image = images[index]
    return Draft(image, image.size)


def hash_image(images: Images, index: int, encoded: bytes | None) -> bytes:
    """A hash of an image: of its encoded bytes, or of its pixels and their shape where these are all there is."""
    if encoded is None:
        pixels: np.ndarray = images.array[index] if isinstance(images, Pixels) else np.asarray(images[index])
        encoded = repr(pixels.shape).encode() + pixels.tobytes()
    return hashlib.blake2b(encoded, digest_size=HASH_SIZE).digest()


def decode(encoded: bytes) -> None:
    """Decode all of an image, to see whether that works; JPEG at an eighth of its size, for speed."""
    if not encoded:
        raise OSError("the file is empty")
    with Image.open(BytesIO(encoded), formats=FORMATS) as image:
        image.draft(None, (max(1, image.width // 8), max(1, image.height // 8)))
        image.load()


def reason(error: BaseException) -> str:
    """A short message for an exception of the image library."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, Image.DecompressionBombError):
        return "it unpacks to an enormous image"
    if isinstance(error, Image.UnidentifiedImageError):
        return "it is no image of a known kind"
    return str(error) or type(error).__name__


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
