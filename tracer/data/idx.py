"""MNIST as it is distributed: four idx files, plain or gzipped, verified by checksum.

Y. LeCun, C. Cortes, C. Burges, *The MNIST database of handwritten digits*; licence CC BY-SA 3.0.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples, Pixels

Split = Literal["train", "test"]
DIGITS = tuple("0123456789")
MAX_BYTES = 1 << 26  # limit on unpacking; every genuine file is smaller

# SHA-256 of the *uncompressed* files: mirrors compress them differently.
FILES: dict[Split, tuple[tuple[str, str], tuple[str, str]]] = {
    "train": (
        ("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        ("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ),
    "test": (
        ("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        ("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}


def idx(folder: str | Path, split: Split) -> Examples:
    """All of MNIST's `split` (60 000 or 10 000 images) from the folder that holds its idx files."""
    grey, labels = arrays(folder, split)
    return digit_examples(f"mnist/{split}", grey, labels)


def arrays(folder: str | Path, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """The grey images [n, 28, 28] and the digits [n] of `split`, both uint8, with verified checksums."""
    if split not in FILES:
        raise unknown("split", split, get_args(Split))
    (images, images_sha), (labels, labels_sha) = FILES[split]
    grey = np.frombuffer(_read_verified(Path(folder), images, images_sha), np.uint8, offset=16)
    digits = np.frombuffer(_read_verified(Path(folder), labels, labels_sha), np.uint8, offset=8)
    return grey.reshape(-1, 28, 28), digits


def digit_examples(name: str, grey: np.ndarray, labels: np.ndarray) -> Examples:
    """Grey digits [n, 28, 28] as RGB examples with the classes "0" to "9" and no captions."""
    return Examples(
        name=name,
        images=Pixels(np.repeat(grey[..., None], 3, axis=-1)),
        ids=[f"{name}/{i:05d}" for i in range(len(labels))],
        labels=labels.astype(np.int64),
        captions=[()] * len(labels),
        classes=DIGITS,
        templates=("the digit {}",),
    )


def _read_verified(folder: Path, name: str, sha256: str) -> bytes:
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise UserError(f"no file {name} or {name}.gz in {folder}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MAX_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be unpacked: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise UserError(f"{path} is not MNIST's {name}: its SHA-256 is {digest}, not {sha256}")
    return content
