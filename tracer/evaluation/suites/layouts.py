"""Layouts of ImageNet-like test sets on disk: class folders, one folder with a table of labels, or tar shards."""

from __future__ import annotations

import csv
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.data.examples import Examples, Images
from tracer.data.sources import load
from tracer.storage.images import SUFFIXES

SOLUTION = "LOC_val_solution.csv"  # in or above the flat validation folder, as in Kaggle's distribution


class LabelledImages(NamedTuple):
    """Images, their ids, and their classes as written in the data: WordNet ids, indices or folder names."""

    images: Images
    ids: list[str]
    keys: list[str]

    def examples(self, name: str, labels: list[int], classes: tuple[str, ...]) -> Examples:
        """The images as a data set with these labels."""
        captions = [()] * len(self.ids)
        return Examples(name, self.images, self.ids, np.array(labels, np.int64), captions, classes)


def read(location: str | Path) -> LabelledImages:
    """The labelled images at `location`: a folder in one of the layouts, or any data that `load` reads."""
    folder = Path(location)
    if not folder.is_dir():
        return loaded(str(location))
    shards = shard_folder(folder)
    if shards is not None:
        return loaded(str(shards))
    return class_folders(folder) if any(each.is_dir() for each in visible(folder)) else flat(folder)


def class_folders(root: Path, only: Container[str] | None = None) -> LabelledImages:
    """The images `root/<class>/<image>`, of the classes in `only` if it is given."""
    folders = [each for each in visible(root) if each.is_dir() and (only is None or each.name in only)]
    paths = [
        f"{folder.name}/{image.name}"
        for folder in folders
        for image in visible(folder)
        if image.suffix.lower() in SUFFIXES
    ]
    if not paths:
        raise UserError(f"{root} has {len(folders)} folders and no image in them")
    return LabelledImages(Files(root, tuple(paths)), paths, [path.partition("/")[0] for path in paths])


def flat(root: Path) -> LabelledImages:
    """Images in one folder, with their classes in Kaggle's table."""
    tables = [folder / SOLUTION for folder in (root, *root.parents[:4]) if (folder / SOLUTION).is_file()]
    paths = [image.name for image in visible(root) if image.suffix.lower() in SUFFIXES]
    if not paths:
        raise UserError(f"{root} holds no images")
    if not tables:
        raise UserError(
            f"{root} holds {len(paths)} images side by side: move them into a folder for each class, "
            f"or put {SOLUTION} beside them"
        )
    with tables[0].open(newline="", encoding="utf-8") as file:
        solution = {row["ImageId"]: row["PredictionString"].split()[0] for row in csv.DictReader(file)}
    unlabelled = [path for path in paths if Path(path).stem not in solution]
    if unlabelled:
        raise UserError(
            f"{tables[0]} says nothing about {len(unlabelled)} images, for example {unlabelled[0]}"
        )
    return LabelledImages(Files(root, tuple(paths)), paths, [solution[Path(path).stem] for path in paths])


def shard_folder(root: Path) -> Path | None:
    """The folder with tar shards: `root`, or `root/test` as on the hub; None if there are no shards."""
    return next((each for each in (root, root / "test") if any(each.glob("*.tar"))), None)


def loaded(spec: str) -> LabelledImages:
    """The labelled images of shards, tables or a hub data set."""
    examples = load(spec)
    if {"val", "test"} & {*examples.splits}:
        examples = load(spec, split="val")  # or test; ImageNet's own test split has no labels
    if not examples.labelled:
        raise UserError(f"{spec} has no labels to score against")
    names = [*examples.classes, ""]  # for label −1, no class
    return LabelledImages(examples.images, list(examples.ids), [names[label] for label in examples.labels])


def visible(folder: Path) -> list[Path]:
    """The entries of a folder, sorted by name, without hidden ones."""
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
