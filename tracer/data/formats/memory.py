"""Data given from Python: torch datasets, Hugging Face data sets, arrays, lists of images or paths."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.classes import Spec
from tracer.data.encoded import HASH_SIZE, Files, read_image
from tracer.data.examples import Examples, Images, Levelled, Pixels, assemble
from tracer.data.formats.arrays import rgb_pixels
from tracer.data.formats.hub import from_datasets
from tracer.data.formats.values import text, texts
from tracer.data.options import Options
from tracer.data.scan import hashed, levelled
from tracer.storage.images import SUFFIXES, range_of_file, seen
from tracer.storage.levels import Range, is_deep, value_range

PREFIX = "memory:"
GIVEN = "data given from Python"
NO_IMAGES = "these data hold no images"
EXPECTED = (
    "expected a folder or file, a torch or Hugging Face data set, or a list of (image, label or caption)"
)
KEYS = {
    "image": ("image", "images"),
    "label": ("label", "labels"),
    "caption": ("caption", "captions", "text"),
}

_registry: dict[str, Examples] = {}  # data of this process by their content, so that a run can name them


def register(data: Any, classes: Spec | None = None) -> str:
    """The name, `memory:` and a hash of the content, under which `load` finds these data in this process."""
    examples = data if isinstance(data, Examples) else from_object(data, classes)
    fingerprint = examples.fingerprint
    if examples.name != GIVEN:  # whose ids have hashes of the pixels in them
        contents = hashed(examples).contents
        assert contents is not None
        fingerprint = hashlib.blake2b(fingerprint.encode() + contents.tobytes(), digest_size=8).hexdigest()
    name = f"{PREFIX}{fingerprint}"
    # Only these examples are at hand: other splits of their source cannot be read under this name.
    _registry[name] = replace(examples, splits=(), split="")
    return name


def registered(name: str) -> Examples:
    """The data that `register` named in this process."""
    if name not in _registry:
        raise UserError(
            f"{name} are data that were given from Python, in another process: go on from there, with "
            "tracer.finetune(the same data, out=the run's folder)"
        )
    return _registry[name]


def from_object(data: Any, classes: Spec | None = None) -> Examples:
    """Examples out of

    - a Hugging Face `Dataset` or `DatasetDict`;
    - a mapping {"image": …, "label": …} or {"image": …, "caption": …} of equally long sequences;
    - a pair (images, labels): arrays, images uint8 of shape [n, h, w] or [n, h, w, 3], or lists;
    - a torch `Dataset`, or any sequence, of (image, label) or (image, caption);
    - a list of paths, where the folder of an image is its class.

    An image is a PIL image, a uint8 array, a tensor (uint8, or float in [0, 1]) or a path. A number is a label, and
    `classes`, or the data set's own attribute `classes`, has its name. A string is a caption, unless there are
    `classes`: then it is the name of one. Images are given without random augmentation: they are hashed, and
    training augments them itself.
    """
    if type(data).__module__.split(".")[0] == "datasets":
        return from_datasets(data, Options(classes=classes))
    if isinstance(data, Mapping):
        return _build(*_columns(data), classes)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], np.ndarray | torch.Tensor | list):
        return _build(collection(data[0]), data[1], None, classes)
    try:
        count = len(data)
        first = data[0] if count else None  # of no images, which are refused below
    except (TypeError, KeyError, AttributeError):
        raise UserError(f"data cannot be a {type(data).__name__}: {EXPECTED}") from None
    if not count:
        raise UserError(NO_IMAGES)
    if is_paths(data):
        # Links are not followed, because what they lead to has other names; Path.absolute would keep "..".
        folders = [Path(os.path.abspath(path)).parent.name for path in data]  # noqa: PTH100
        return _build(collection(data), folders, None, classes)
    if not isinstance(first, tuple | list) or len(first) != 2:
        raise UserError(f"an element of these data is a {type(first).__name__}: {EXPECTED}")
    targets = [data[i][1] for i in range(count)]
    names = classes if classes is not None else getattr(data, "classes", None)
    if names is None and len({isinstance(each, str) for each in targets}) > 1:
        raise UserError("some images have a text and others a number: captions or labels, not both")
    labelled = names is not None or not isinstance(targets[0], str)
    return _build(
        Converted(data, pairs=True), targets if labelled else None, None if labelled else targets, names
    )


def _columns(data: Mapping[Any, Any]) -> tuple[Images, Any, Any]:
    """The images, labels and captions of a mapping, each under one of its names."""
    images, labels, captions = ([data[key] for key in keys if key in data] for keys in KEYS.values())
    unexpected = sorted(set(map(str, data)) - {key for keys in KEYS.values() for key in keys})
    if not images or unexpected:
        problem = f"has the unknown key {unexpected[0]!r}" if unexpected else 'has no "image"'
        raise UserError(f"a mapping of data {problem}: expected image, and label or caption")
    for keys, values in zip(KEYS.values(), (images, labels, captions), strict=True):
        if len(values) > 1:
            raise UserError(f"a mapping of data has more than one of {', '.join(keys)}: leave one out")
    return collection(images[0]), next(iter(labels), None), next(iter(captions), None)


def is_paths(data: Any) -> bool:
    """Whether data are a list of image files, by their suffixes."""
    return (
        isinstance(data, list | tuple)
        and len(data) > 0
        and all(isinstance(each, str | Path) and Path(each).suffix.lower() in SUFFIXES for each in data)
    )


@dataclass(frozen=True)
class Converted(Levelled):
    """Images in any of the accepted forms, converted on access; each may be the first of a pair."""

    images: Any
    pairs: bool = False

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Image.Image:
        return to_image(self.element(index), self.white)

    def element(self, index: int) -> Any:
        """An image as it was given."""
        element = self.images[index]
        return element[0] if self.pairs else element


def to_image(value: Any, white: float | None = None) -> Image.Image:
    """An image as it is seen, out of a PIL image, an array, a tensor or a path."""
    if isinstance(value, str | Path):
        return Files(Path(), (str(value),), white=white)[0]
    if isinstance(value, Image.Image):
        return seen(value, white)
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            if value.min() < 0 or value.max() > 1:
                raise UserError("a float image lies outside [0, 1]: give images before they are normalised")
            value = (value * 255).round().to(torch.uint8)
        value = value.detach().cpu().numpy()
        if value.ndim == 3 and value.shape[0] in (1, 3):
            value = value.transpose(1, 2, 0)
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        value = value[:, :, 0] if value.ndim == 3 and value.shape[2] == 1 else value
        if value.ndim == 2 or (value.ndim == 3 and value.shape[2] in (3, 4)):
            return seen(Image.fromarray(np.ascontiguousarray(value)))
    form = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
    raise UserError(f"an image cannot be a {form}: expected a PIL image, a uint8 array, a tensor or a path")


def _build(images: Images, labels: Any, captions: Any, classes: Spec | None) -> Examples:
    if labels is None and captions is None:
        raise UserError("these data have images and neither labels nor captions")
    counts = {len(column) for column in (images, labels, captions) if column is not None}
    if len(counts) != 1:
        raise UserError(f"images, labels and captions differ in number: {sorted(counts)}")
    if counts == {0}:
        raise UserError(NO_IMAGES)
    keys = None if labels is None else [_key(label) for label in labels]
    if keys is not None and classes is None and all(key.lstrip("-").isdecimal() for key in keys):
        raise UserError(
            "the labels are numbers: give classes=[…], the name of each, which becomes its caption"
        )
    numbered = labels is not None and not any(isinstance(label, str) for label in labels)
    naming = classes
    if keys is not None and not numbered and not isinstance(classes, str | Path | Mapping | None):
        naming = {name: name for name in classes} if set(keys) <= set(classes) else classes  # in their order
    # A hash of the pixels is a part of each id, so that other pixels are other data.
    digests, ranges = zip(*(_examined(images, index) for index in range(len(images))), strict=True)
    examples = assemble(
        GIVEN,
        images,
        [f"{index:07d}-{digest.hex()}" for index, digest in enumerate(digests)],
        keys=keys,
        naming=naming,
        numbered=numbered,
        captions=None if captions is None else list(map(texts, captions)),
    )
    padded = b"".join(digest.ljust(HASH_SIZE, b"\0") for digest in digests)
    whole = replace(examples, contents=np.frombuffer(padded, np.uint8).reshape(-1, HASH_SIZE))
    return levelled(whole, [each for each in ranges if each is not None])


def _examined(images: Images, index: int) -> tuple[bytes, Range | None]:
    """A hash of an image's pixels, and the range of its values if it has more than eight bits."""
    if isinstance(images, Pixels):
        shown, element, values = images[index], None, None
    else:
        assert isinstance(images, Converted | Files)
        element = images.element(index) if isinstance(images, Converted) else images.name(index)
        values = value_range(element) if isinstance(element, Image.Image) else None  # while it is not decoded
        shown = to_image(element)
    pixels = repr(shown.size).encode() + shown.tobytes()
    if isinstance(element, str | Path):
        encoded = read_image(Path(element))
        values = range_of_file(encoded)
        pixels = pixels if values is None else encoded
    elif values is not None and isinstance(element, Image.Image) and is_deep(element):
        pixels = f"{element.mode} {element.size}".encode() + element.tobytes()
    return hashlib.blake2b(pixels, digest_size=8).digest(), values


def collection(images: Any) -> Images:
    """Arrays and files in the form that the rest of tracer reads fastest; anything else is converted one by one."""
    array = images
    if isinstance(images, torch.Tensor):
        array = images.detach().cpu().numpy()
        array = array.transpose(0, 2, 3, 1) if array.ndim == 4 and array.shape[1] in (1, 3) else array
    if isinstance(array, np.ndarray) and (array.ndim == 3 or (array.ndim == 4 and array.shape[3] != 4)):
        return Pixels(rgb_pixels(array, GIVEN))
    if isinstance(images, list | tuple) and all(isinstance(image, str | Path) for image in images):
        return Files(Path(), tuple(map(str, images)))
    return Converted(images)


def _key(label: Any) -> str:
    single = isinstance(label, np.generic | np.ndarray | torch.Tensor) and np.ndim(label) == 0
    value = label.item() if single else label
    return text(int(value) if isinstance(value, bool) else value)
