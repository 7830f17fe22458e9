"""Images that lie somewhere encoded (JPEG, PNG, …) and are read one at a time when asked for."""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from tracer.data.examples import Images, Subset
from tracer.data.pixels import rgb
from tracer.errors import UserError

SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".avif")
)

# What Pillow's decoders raise at broken files; a wrong header can send them anywhere.
BROKEN = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, RuntimeError, MemoryError, struct.error, zlib.error, Image.DecompressionBombError),
)


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
        try:
            with Image.open(BytesIO(self.content(index))) as image:
                return rgb(image)
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
