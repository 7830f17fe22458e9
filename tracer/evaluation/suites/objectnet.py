"""ObjectNet: 113 of its 313 classes overlap with ImageNet's, each with one or several of them.

Four files in `mappings`, distributed with the data, define the overlap. Images have a red border, so two pixels are
cropped on each side. Reference: Barbu et al. 2019; https://objectnet.dev.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageOps

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples, Images
from tracer.evaluation.suites.layouts import class_folders, read, shard_folder, visible
from tracer.evaluation.suites.shift import AbsentError, Groups

OVERLAP = 113
BORDER = 2
FILES = (
    "folder_to_objectnet_label.json",
    "objectnet_to_imagenet_1k.json",
    "pytorch_to_imagenet_2012_id.json",
    "imagenet_to_label_2012_v2",
)


class Mapping(NamedTuple):
    """The overlapping classes, sorted by folder, with the ImageNet columns of each."""

    folders: tuple[str, ...]
    names: tuple[str, ...]
    columns: Groups
    elsewhere: frozenset[str]  # folders of classes without a counterpart in ImageNet


@dataclass(frozen=True)
class Borderless:
    """Images with the border cropped."""

    images: Images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Image.Image:
        return ImageOps.crop(self.images[index], BORDER)


def mapping(root: Path) -> Mapping:
    """The ImageNet classes of each ObjectNet class, from the files in `mappings`."""
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
    """Images of the overlapping classes: `images/<folder>/*.png`, or shards labelled by folder number."""
    if shard_folder(root) is not None:
        labelled = read(root)
        folder_of = {str(i): folder for i, folder in enumerate(classes.folders)}
        labelled = labelled._replace(keys=[folder_of.get(key, key) for key in labelled.keys])
        _check_known(set(labelled.keys), classes.folders, root)
    else:
        folder = root / "images"
        if not folder.is_dir():
            raise AbsentError(f"ObjectNet: there is no folder {folder}")
        folders = {each.name for each in visible(folder) if each.is_dir()}
        _check_known(folders, (*classes.folders, *classes.elsewhere), root)
        labelled = class_folders(folder, only=classes.folders)
    label = {folder: i for i, folder in enumerate(classes.folders)}
    labels = [label[key] for key in labelled.keys]
    return labelled._replace(images=Borderless(labelled.images)).examples("ObjectNet", labels, classes.names)


def _check_known(names: set[str], known: tuple[str, ...], root: Path) -> None:
    if foreign := names - set(known):
        raise unknown(f"class of ObjectNet in {root}", min(foreign), known)


def _columns(names: str, column: dict[str, int], where: Path) -> tuple[int, ...]:
    missing = [name for name in names.split("; ") if name not in column]
    if missing:
        raise UserError(f"{where / FILES[1]} names {missing[0]!r}, which {FILES[3]} does not")
    return tuple(column[name] for name in names.split("; "))


def _json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from error


def _text(path: Path) -> str:
    if not path.is_file():
        raise AbsentError(f"ObjectNet: {path} is missing; it comes with the data, in mappings")
    return path.read_text(encoding="utf-8")
