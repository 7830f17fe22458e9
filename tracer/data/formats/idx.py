"""idx files, plain or gzipped: MNIST, verified by checksum, and other data sets in its format (Fashion-MNIST, …).

Y. LeCun, C. Cortes, C. Burges, *The MNIST database of handwritten digits*; licence CC BY-SA 3.0.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path
from typing import Literal

import numpy as np

from tracer.core.errors import UserError
from tracer.data.classes import Spec
from tracer.data.encoded import refuse_black
from tracer.data.examples import Examples, Pixels, assemble

Split = Literal["train", "test"]
DIGITS = tuple("0123456789")
MAX_BYTES = 1 << 30  # limit on unpacking; the largest data set in this format, EMNIST, is smaller
IMAGES, LABELS = 0x0803, 0x0801  # magic numbers: bytes in three dimensions, and in one

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


def idx(folder: str | Path, split: Split, names: Spec | None = None) -> Examples:
    """The images of `split` from the folder that holds its idx files: MNIST's digits, or classes called `names`.

    Labels of other data sets than MNIST are numbers without a meaning: raises UserError if they have no names.
    """
    contents = {name: _read(Path(folder), name) for name, _ in FILES[split]}
    mnist = all(hashlib.sha256(contents[name]).hexdigest() == sha256 for name, sha256 in FILES[split])
    if not mnist and names is None:
        problem = f"the idx files in {folder} are not MNIST's (their checksums differ), and their labels are numbers"
        raise UserError(f"{problem}: name the classes with --classes FILE, one a line, the first for label 0")
    grey, labels = (_array(content, Path(folder) / name) for name, content in contents.items())
    if mnist:
        return digit_examples(f"mnist/{split}", grey, labels)
    if len(grey) != len(labels):
        raise UserError(f"the idx files in {folder} hold {len(grey)} images and {len(labels)} labels")
    refuse_black(grey, str(folder))
    return assemble(
        str(folder),
        Pixels(np.repeat(grey[..., None], 3, axis=-1)),
        [f"{split}/{i:05d}" for i in range(len(labels))],
        keys=list(map(str, labels.tolist())),
        naming=names,
        numbered=True,
    )


def arrays(folder: str | Path, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """MNIST's grey images [n, 28, 28] and digits [n] of `split`, both uint8, with verified checksums."""
    parts = []
    for name, sha256 in FILES[split]:
        content, path = _read(Path(folder), name), Path(folder) / name
        if (digest := hashlib.sha256(content).hexdigest()) != sha256:
            raise UserError(f"{path} is not MNIST's {name}: its SHA-256 is {digest}, not {sha256}")
        parts.append(_array(content, path))
    return parts[0], parts[1]


def _array(content: bytes, path: Path) -> np.ndarray:
    """The bytes of an idx file in the shape that its header gives."""
    header = np.frombuffer(content[:16], ">u4", count=min(4, len(content) // 4)).tolist()
    size = {IMAGES: 4, LABELS: 2}.get(header[0] if header else 0, 0)
    shape = header[1:size]
    if not size or len(shape) != size - 1 or len(content) != 4 * size + math.prod(shape):
        raise UserError(
            f"{path} is not an idx file of bytes, or is cut off: {len(content)} bytes, header {header}"
        )
    return np.frombuffer(content, np.uint8, offset=4 * size).reshape(shape)


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


def _read(folder: Path, name: str) -> bytes:
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise UserError(f"no file {name} or {name}.gz in {folder}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(MAX_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be unpacked: {error}") from error
