"""Images alone, in any form in which they are at hand, as examples without labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.data.examples import Examples, Images
from tracer.data.formats.columns import NONE
from tracer.data.formats.folder import image_files, is_image, other_kinds
from tracer.data.formats.hub import column_of_images
from tracer.data.formats.memory import Converted, collection
from tracer.data.sources import TABLES, is_data_set, load
from tracer.storage.images import SUFFIXES

FORMS = "expected paths, PIL images, arrays, tensors, a list of them, a data set or the name of one"


def images_of(given: Any) -> Examples:
    """The images in `given`, with a name each: its path or id, or its number.

    `given` is one image (a path, a PIL image, an array [h, w] or [h, w, 3], a tensor [3, h, w]), several (a list of
    them, an array [n, h, w, 3], a tensor [n, 3, h, w], a folder, whose images at any depth are taken), `Examples`, a
    data set of torch or Hugging Face, what `tracer.finetune` takes, or the name of any data that `tracer eval` reads,
    of which the same split is taken. Arrays are uint8, or floats between 0 and 1 that are not normalised yet. Labels
    and captions are left out.
    """
    if isinstance(given, Examples):
        return given
    if isinstance(given, str | os.PathLike):
        return _at(os.fspath(given))
    if isinstance(given, Image.Image):
        return _numbered(Converted([given]))
    if isinstance(given, np.ndarray | torch.Tensor):
        return _numbered(_pixels(given))
    if isinstance(given, Mapping) and "image" in given:
        return images_of(given["image"])
    if type(given).__module__.split(".")[0] == "datasets":
        return _numbered(column_of_images(given, "a Hugging Face data set"))
    if isinstance(given, tuple) and len(given) == 2 and _several(given[0]):
        return images_of(given[0])  # and their labels
    try:
        elements: Any = given if isinstance(given, Sized) else list(given)
        first = elements[0] if len(elements) else None
    except (TypeError, KeyError, AttributeError):
        raise UserError(f"images cannot be a {type(given).__name__}: {FORMS}") from None
    if isinstance(first, tuple | list):
        return _numbered(Converted(elements, pairs=True))  # each with its label or caption
    images = collection(elements)
    return _named(images, images.paths) if isinstance(images, Files) else _numbered(images)


def _at(name: str) -> Examples:
    """The image, the images below the folder, or the data set of this name."""
    path = Path(name)
    if path.is_dir() and not is_data_set(path) and (below := image_files(path)):
        warnings = other_kinds(path)
        return replace(_named(Files(path, below), [str(path / each) for each in below]), warnings=warnings)
    if "://" not in name and (path.suffix.lower() in SUFFIXES or is_image(path.parent, path.name)):
        return _named(Files(Path(), (name,)), [name])
    # New images have no labels: where these could be, none are looked for.
    unlabelled = path.suffix.lower() in (*TABLES, ".npz", ".tar", ".tar}") or "://" in name
    options = {"label": NONE, "caption": NONE} if unlabelled else {}
    examples = load(name, **options)
    part = next((each for each in ("test", "val") if each in examples.splits), None)
    return load(name, split=part, **options) if part else examples


def _several(given: Any) -> bool:
    return isinstance(given, list) or getattr(given, "ndim", 0) == 4


def _pixels(given: np.ndarray | torch.Tensor) -> Images:
    """One image or several; an array whose shape could be either is refused."""
    shape = tuple(given.shape)
    if isinstance(given, torch.Tensor):
        single = len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))
        return Converted([given]) if single else collection(given)
    if len(shape) == 3 and shape[0] == 3 and shape[2] not in (1, 3, 4):
        form = " × ".join(map(str, shape))
        raise UserError(f"an array of {form} may be one image or three: give [h, w, 3] or [n, h, w, 3]")
    if len(shape) == 3 and shape[2] == 4:
        return Converted([given])
    return collection(given[None] if len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3)) else given)


def _numbered(images: Images) -> Examples:
    return _named(images, [str(number) for number in range(len(images))])


def _named(images: Images, names: Sequence[str]) -> Examples:
    labels = np.full(len(images), -1, np.int64)
    return Examples("images", images, names, labels, [()] * len(images))
