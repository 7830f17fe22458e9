"""NumPy archives: `images`, with `labels`, `captions` or both, and the names of the `classes`.

Arrays of several splits are called `x_train` and `x_test`, or `train_images` and `test_images`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from tracer.core.errors import UserError
from tracer.data.encoded import refuse_black
from tracer.data.examples import Examples, Pixels, assemble
from tracer.data.formats.columns import find_columns, row_splits
from tracer.data.options import Options, splits_by_name
from tracer.storage.images import BROKEN

MAX_RATIO = 200  # of unpacked to packed bytes; images are packed by a factor of 2 to 20
UNPACKED = 1 << 28  # bytes that may be unpacked whatever the ratio

CLASSES = ("classes", "class_names", "classnames", "names")

UNREADABLE = (*BROKEN, zipfile.BadZipFile)  # raised by NumPy and zipfile on damaged or mislabelled files


def read_arrays(path: Path, options: Options) -> Examples:
    """Read an `.npz` file, whose arrays are recognised by name like the columns of a table."""
    options.refuse("a NumPy file", "separator")
    arrays = _read(path)
    own_names = next((arrays.pop(name) for name in CLASSES if name in arrays), None)
    naming = options.classes
    if naming is None and own_names is not None:
        naming = [str(name) for name in np.atleast_1d(_decoded(own_names, f"{path}, class names")).tolist()]
    arrays = _joined(arrays, path)
    pictures = [name for name, array in arrays.items() if array.ndim > 2]
    alone = pictures[0] if len(pictures) == 1 and options.image is None else None
    columns = find_columns(tuple(arrays), options, path.name, image=alone)
    one_hot = False
    if columns.label:
        one_hot = arrays[columns.label].shape[1:2] > (1,)
        arrays[columns.label] = _labels(_decoded(arrays[columns.label], f"{path}, {columns.label}"))
    if columns.caption:
        arrays[columns.caption] = _decoded(arrays[columns.caption], f"{path}, {columns.caption}")
    pixels = rgb_pixels(arrays[columns.image], f"{path}, {columns.image}")
    used = tuple(filter(None, (columns.label, columns.caption)))
    for name in used:
        if arrays[name].shape[:1] != pixels.shape[:1]:
            raise UserError(f"{path}: {len(pixels)} images, but {name} has the shape {arrays[name].shape}")
    table = {
        name: array.tolist()
        for name, array in arrays.items()
        if name in used or (name != columns.image and array.shape == pixels.shape[:1])
    }
    return assemble(
        str(path),
        Pixels(pixels),
        [f"{i:06d}" for i in range(len(pixels))],
        keys=columns.keys(table, str(path)),
        naming=naming,
        numbered=one_hot,
        captions=columns.captions(table, str(path)),
        split=row_splits(table, columns, str(path)).choose(options, path.name),
        detected=columns.detected("array"),
    )


def _joined(arrays: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """Arrays of several splits, such as x_train and x_test, as one array each, with an array `split` of their names."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        words = name.split("_")
        split = [word for word in words if splits_by_name([word])]
        if len(split) == 1 < len(words):
            parts.setdefault(split[0], {})["_".join(word for word in words if word != split[0])] = array
    if len(parts) < 2:
        return arrays
    first, *others = parts.values()
    try:
        if any(part.keys() != first.keys() for part in others):
            raise ValueError(f"{' and '.join(parts)} have different arrays")
        joined = {name: np.concatenate([part[name] for part in parts.values()]) for name in first}
        sizes = [len(max(part.values(), key=np.ndim)) for part in parts.values()]
    except (ValueError, TypeError) as error:
        raise UserError(f"the splits in {path} cannot be read as one data set: {error}") from error
    return {**joined, "split": np.repeat(list(parts), sizes)}


def _decoded(array: np.ndarray, where: str) -> np.ndarray:
    """Bytes as the text that they are in UTF-8; other arrays as they are."""
    if array.dtype.kind != "S":
        return array
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: bytes that are no UTF-8 text: {error}") from error


def _labels(labels: np.ndarray) -> np.ndarray:
    """One label an image, from a column [n, 1] or from one-hot rows [n, classes]; other shapes unchanged."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        return labels[:, 0]
    if labels.ndim == 2 and labels.dtype.kind in "biuf" and labels.size:
        if np.isin(labels, (0, 1)).all() and (labels.sum(1) == 1).all():
            return labels.argmax(1)
        raise UserError(
            f"the labels have the shape {labels.shape} and are not one-hot: give each image one label, [n]"
        )
    return labels


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise UserError(f"{path} holds one array: save images and labels together with np.savez")
            members = archive.zip.infolist() if archive.zip else []
            packed, unpacked = (
                sum(getattr(each, size) for each in members) for size in ("compress_size", "file_size")
            )
            if unpacked > max(MAX_RATIO * packed, UNPACKED):
                raise UserError(
                    f"{path} unpacks from {packed} to {unpacked} bytes: it is refused as a zip bomb"
                )
            twice = [name for name in archive.files if archive.files.count(name) > 1]
            if twice:
                raise UserError(f"{path} holds {twice[0]!r} twice: save each array once")
            return {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        raise UserError(f"{path} cannot be read as a NumPy archive without pickles: {error}") from error


def rgb_pixels(images: np.ndarray, where: str) -> np.ndarray:
    """Images as uint8 [n, h, w, 3], from grey or RGB, channels first or last, uint8 or floats in [0, 1]."""
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        images = images.transpose(0, 2, 3, 1)
    pixels = images[..., None] if images.ndim == 3 else images
    if pixels.ndim != 4 or pixels.shape[3] not in (1, 3) or 0 in pixels.shape[1:]:
        raise UserError(f"{where}: expected images [n, h, w] or [n, h, w, 3], found the shape {images.shape}")
    refuse_black(images, where)
    if images.dtype.kind == "f":
        if not (np.isfinite(pixels).all() and pixels.min(initial=0) >= 0 and pixels.max(initial=0) <= 1):
            raise UserError(f"{where}: floating values must lie between 0 and 1, before they are normalised")
        pixels = np.rint(pixels * 255).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise UserError(f"{where}: expected uint8 values, or floats between 0 and 1, found {images.dtype}")
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:3], 3)))
