"""Hashes of images: of their encoded bytes, or of their pixels where these are all there is."""

from __future__ import annotations

import hashlib

import numpy as np

from tracer.data.encoded import content
from tracer.data.examples import Images, Pixels

SIZE = 16  # bytes of a hash


def hash_image(images: Images, index: int) -> bytes:
    """A hash of an image's content."""
    encoded = content(images, index)
    return hash_pixels(images, index) if encoded is None else hash_bytes(encoded)


def hash_bytes(encoded: bytes) -> bytes:
    """A hash of an encoded image."""
    return hashlib.blake2b(encoded, digest_size=SIZE).digest()


def hash_pixels(images: Images, index: int) -> bytes:
    """A hash of an image's pixels and their shape."""
    pixels = images.array[index] if isinstance(images, Pixels) else np.asarray(images[index])
    return hash_bytes(repr(pixels.shape).encode() + pixels.tobytes())
