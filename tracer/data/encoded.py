"""Images that lie somewhere encoded (JPEG, PNG, …) and are read one at a time when asked for."""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from tracer.core.errors import UserError
from tracer.data.examples import Images, Subset
from tracer.data.pixels import rgb

SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".avif")
)

# What Pillow's decoders raise at broken files; a wrong header can send them anywhere.
BROKEN = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, RuntimeError, MemoryError, struct.error, zlib.error, Image.DecompressionBombError),
)


class Draft(NamedTuple):
    """A decoded image, the size it has in its file, and how many times smaller it was decoded."""

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
        """Where it lies, for messages."""

    def __getitem__(self, index: int) -> Image.Image:
        return self.draft(index, None).image

    def draft(self, index: int, least: tuple[int, int] | None) -> Draft:
        """A JPEG at a half, a quarter or an eighth where `least` pixels are left; any other image as it is."""
        try:
            with Image.open(BytesIO(self.content(index))) as image:
                stored = image.size
                drafted = image.draft(None, least) if least else None  # None where a format has no drafts
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
        return (self.root / self.paths[index]).read_bytes()

    def name(self, index: int) -> str:
        return str(self.root / self.paths[index])


def content(images: Images, index: int) -> bytes | None:
    """The encoded bytes behind an image; None where there are only pixels."""
    while isinstance(images, Subset):
        images, index = images.images, int(images.indices[index])
    return images.content(index) if isinstance(images, Encoded) else None


def draft(images: Images, index: int, least: tuple[int, int]) -> Draft:
    """An image no larger than it need be, from whatever holds it."""
    while isinstance(images, Subset):
        images, index = images.images, int(images.indices[index])
    if isinstance(images, Encoded):
        return images.draft(index, least)
    image = images[index]
    return Draft(image, image.size)


def decode(encoded: bytes) -> None:
    """Decode all of an image, to see whether that works; JPEG at an eighth of its size, for speed."""
    if not encoded:
        raise OSError("the file is empty")
    with Image.open(BytesIO(encoded)) as image:
        image.draft(None, (image.width // 8, image.height // 8))
        image.load()


def reason(error: BaseException) -> str:
    """An exception of the image library as a few words."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, Image.DecompressionBombError):
        return "it unpacks to an enormous image"
    if isinstance(error, Image.UnidentifiedImageError):
        return "it is no image of a known kind"
    return str(error) or type(error).__name__
