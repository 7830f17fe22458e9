"""NumPy archives: `images`, with `labels`, `captions` or both, and the names of the `classes`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tracer.core.errors import UserError
from tracer.data.assembly import assembled
from tracer.data.classes import Spec
from tracer.data.columns import columns
from tracer.data.examples import Examples, Pixels
from tracer.data.options import Options
from tracer.data.values import text, texts

CLASSES = ("classes", "class_names", "classnames", "names")

# What NumPy and zipfile raise at files that are not what they say; RuntimeError at one with a password.
UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, RuntimeError, MemoryError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)


def arrayed(path: Path, options: Options) -> Examples:
    """The examples in an `.npz` file, whose arrays are found by name as the columns of a table are."""
    options.refuse("a NumPy file", "separator")
    arrays = _read(path)
    names = next((arrays.pop(name) for name in CLASSES if name in arrays), None)
    used = columns(tuple(arrays), options, path.name)
    pixels = _pixels(arrays[used.image], f"{path}, {used.image}")
    for name in filter(None, (used.label, used.caption)):
        if arrays[name].shape[:1] != pixels.shape[:1]:
            raise UserError(f"{path}: {len(pixels)} images, but {name} has the shape {arrays[name].shape}")
    return assembled(
        str(path),
        Pixels(pixels),
        [f"{i:06d}" for i in range(len(pixels))],
        keys=[text(value) for value in arrays[used.label].tolist()] if used.label else None,
        naming=_naming(options, names),
        captions=[texts(value) for value in arrays[used.caption].tolist()] if used.caption else None,
        detected=tuple(note.replace("column", "array") for note in used.detected),
    )


def _naming(options: Options, names: np.ndarray | None) -> Spec | None:
    return options.classes if options.classes is not None or names is None else [str(name) for name in names]


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise UserError(f"{path} holds one array: save images and labels together with np.savez")
            return {name: stored[name] for name in stored.files}
    except UNREADABLE as error:
        raise UserError(f"{path} cannot be read as a NumPy archive without pickles: {error}") from error


def _pixels(images: np.ndarray, where: str) -> np.ndarray:
    """Images as uint8 [n, h, w, 3]: from grey or colour, channels first or last, uint8 or floats up to 1."""
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        images = images.transpose(0, 2, 3, 1)
    grey = images[..., None] if images.ndim == 3 else images
    if grey.ndim != 4 or grey.shape[3] not in (1, 3) or 0 in grey.shape[1:]:
        raise UserError(f"{where}: expected images [n, h, w] or [n, h, w, 3], found the shape {images.shape}")
    if images.dtype.kind == "f":
        if not (np.isfinite(grey).all() and grey.min(initial=0) >= 0 and grey.max(initial=0) <= 1):
            raise UserError(f"{where}: floating values must lie between 0 and 1")
        grey = np.rint(grey * 255).astype(np.uint8)
    if grey.dtype != np.uint8:
        raise UserError(f"{where}: expected uint8 values, or floats between 0 and 1, found {images.dtype}")
    return np.ascontiguousarray(np.broadcast_to(grey, (*grey.shape[:3], 3)))
