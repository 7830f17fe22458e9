"""Images stored encoded (JPEG, PNG, …), read and decoded to RGB one at a time on access; hashes of images."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import numpy as np
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.examples import Images, Levelled, Pixels, origin
from tracer.storage.images import BROKEN, Draft, read, reason

LARGEST = 1 << 30  # bytes of an image file
HASH_SIZE = 16  # bytes of a hash


@dataclass(frozen=True)
class Encoded(Levelled, ABC):
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
            return read(self.content(index), self.white, least)
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
        raise OSError(f"it has {status.st_size:,} bytes, and at most {LARGEST:,} are read: make it smaller")
    return path.read_bytes()


def content(images: Images, index: int) -> bytes | None:
    """The encoded bytes of an image; None if it is stored as pixels."""
    images, index = origin(images, index)
    return images.content(index) if isinstance(images, Encoded) else None


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


def refuse_black(pixels: np.ndarray, where: str) -> None:
    """Raise UserError if bytes are 0 and 1 alone: they count up to 255, so that every image would look black."""
    if pixels.dtype == np.uint8 and pixels.size and pixels.max() == 1:
        raise UserError(f"{where}: the values are 0 and 1, black to the eye: multiply them by 255")
