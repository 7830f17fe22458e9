"""ObjectNet: 113 of its 313 classes overlap with ImageNet's, each with one or several of them.

Which ones is said by four files that come with the data, in `mappings`. Images have a red border, so two
pixels are cut off each side. Reference: Barbu et al. 2019; https://objectnet.dev.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples, Images
from tracer.evaluation.suites.layouts import Found, class_folders, read, shard_folder, visible
from tracer.evaluation.suites.projection import LargestOf
from tracer.evaluation.suites.shift import AbsentError
from tracer.evaluation.suites.synsets import CLASSES

OVERLAP = 113
BORDER = 2
FILES = (
    "folder_to_objectnet_label.json",
    "objectnet_to_imagenet_1k.json",
    "pytorch_to_imagenet_2012_id.json",
    "imagenet_to_label_2012_v2",
)


class Mapping(NamedTuple):
    """The overlapping classes in order of their folders: names, and the ImageNet columns of each."""

    folders: tuple[str, ...]
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    elsewhere: frozenset[str] = frozenset()  # folders of the classes that ImageNet does not have

    @property
    def projection(self) -> LargestOf:
        return LargestOf(self.columns, CLASSES)


@dataclass(frozen=True)
class Borderless:
    """Images without their outermost pixels."""

    images: Images
    width: int = BORDER

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Image.Image:
        image = self.images[index]
        w, h = image.size
        return image.crop((self.width, self.width, w - self.width, h - self.width))


def mapping(root: Path) -> Mapping:
    """What the data's own files say about which ImageNet classes an ObjectNet class stands for."""
    folder = next((each for each in (root / "mappings", root) if (each / FILES[0]).is_file()), None)
    if folder is None:
        raise AbsentError(f"ObjectNet: {root} lacks mappings/{FILES[0]}, which comes with the data")
    labels, overlap, order = (_json(folder / name) for name in FILES[:3])
    lines = _text(folder / FILES[3]).splitlines()
    column = {lines[int(line)].strip(): int(index) for index, line in order.items()}
    folders = sorted(each for each, label in labels.items() if label in overlap)
    if len(folders) != OVERLAP:
        raise UserError(f"the mapping in {folder} has {len(folders)} overlapping classes, not {OVERLAP}")
    return Mapping(
        tuple(folders),
        tuple(labels[each] for each in folders),
        tuple(_columns(overlap[labels[each]], column, folder) for each in folders),
        frozenset(labels) - frozenset(folders),
    )


def examples(root: Path, classes: Mapping) -> Examples:
    """The images of the overlapping classes."""
    found = overlapping(root, classes)
    place = {folder: i for i, folder in enumerate(classes.folders)}
    return Examples(
        name="ObjectNet",
        images=Borderless(found.images),
        ids=found.ids,
        labels=np.array([place[key] for key in found.keys], np.int64),
        captions=[()] * len(found.ids),
        classes=classes.names,
    )


def overlapping(root: Path, classes: Mapping) -> Found:
    """`images/<folder>/*.png` of the classes in the overlap, or shards whose labels count their folders."""
    if shard_folder(root) is not None:
        found = read(root)
        number = {str(i): folder for i, folder in enumerate(classes.folders)}
        keys = [number.get(key, key) for key in found.keys]
        _refuse(set(keys) - set(classes.folders), classes.folders, root)
        return Found(found.images, found.ids, keys)
    images = root / "images"
    if not images.is_dir():
        raise AbsentError(f"ObjectNet: there is no folder {images}")
    here = {each.name for each in visible(images) if each.is_dir()}
    _refuse(here - set(classes.folders) - classes.elsewhere, (*classes.folders, *classes.elsewhere), root)
    return class_folders(images, only=classes.folders)


def _refuse(strange: set[str], known: tuple[str, ...], root: Path) -> None:
    if strange:
        raise unknown(f"class of ObjectNet in {root}", min(strange), known)


def _columns(names: str, column: dict[str, int], where: Path) -> tuple[int, ...]:
    strange = [name for name in names.split("; ") if name not in column]
    if strange:
        raise UserError(f"{where / FILES[1]} names {strange[0]!r}, which {FILES[3]} does not")
    return tuple(column[name] for name in names.split("; "))


def _json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(_text(path))
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error


def _text(path: Path) -> str:
    if not path.is_file():
        raise AbsentError(f"ObjectNet: {path} is not there; it comes with the data, in mappings")
    return path.read_text(encoding="utf-8")
