"""How ImageNet-like test sets lie on disk: in class folders, side by side with a table, or in tar shards."""

from __future__ import annotations

import csv
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

from tracer.core.errors import UserError
from tracer.data.encoded import SUFFIXES, Files
from tracer.data.examples import Images
from tracer.data.options import canonical
from tracer.data.sources import load

SOLUTION = "LOC_val_solution.csv"  # beside or above the flat validation folder, as Kaggle distributes it


class Found(NamedTuple):
    """Images, an id for each, and how its class is written: a WordNet id, an index or a folder's name."""

    images: Images
    ids: list[str]
    keys: list[str]


def read(place: str | Path) -> Found:
    """The labelled images at `place`: a folder in one of the layouts, or any data that `load` knows."""
    folder = Path(place)
    if not folder.is_dir():
        return loaded(str(place))
    shards = shard_folder(folder)
    if shards is not None:
        return loaded(str(shards))
    return class_folders(folder) if any(each.is_dir() for each in visible(folder)) else flat(folder)


def class_folders(root: Path, only: Container[str] | None = None) -> Found:
    """`root/<class>/<image>`, at exactly this depth; of the classes in `only`, if that is given."""
    folders = [each for each in visible(root) if each.is_dir() and (only is None or each.name in only)]
    paths = [
        f"{folder.name}/{image.name}"
        for folder in folders
        for image in visible(folder)
        if image.suffix.lower() in SUFFIXES
    ]
    if not paths:
        raise UserError(f"{root} has {len(folders)} folders and no image in them")
    return Found(Files(root, tuple(paths)), paths, [path.partition("/")[0] for path in paths])


def flat(root: Path) -> Found:
    """Validation images side by side, with their classes in the table that comes with them."""
    tables = [above / SOLUTION for above in (root, *root.parents[:4]) if (above / SOLUTION).is_file()]
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
    unsolved = [path for path in paths if Path(path).stem not in solution]
    if unsolved:
        raise UserError(f"{tables[0]} says nothing about {len(unsolved)} images, for example {unsolved[0]}")
    return Found(Files(root, tuple(paths)), paths, [solution[Path(path).stem] for path in paths])


def shard_folder(root: Path) -> Path | None:
    """Where the tar shards are: in the folder or in its `test`, as the hub has them."""
    return next((each for each in (root, root / "test") if any(each.glob("*.tar"))), None)


def loaded(spec: str) -> Found:
    """Shards, tables or a hub data set, with the class of each image as it is written there."""
    examples = load(spec)
    if {"val", "test"} & set(map(canonical, examples.splits)):
        examples = load(spec, split="val")  # else test: the test split of ImageNet itself has no labels
    if not examples.labelled:
        raise UserError(f"{spec} has no labels to score against")
    names = [*examples.classes, ""]  # label −1 is none
    return Found(examples.images, list(examples.ids), [names[label] for label in examples.labels])


def visible(folder: Path) -> list[Path]:
    """What lies in a folder, in order of name, without hidden files."""
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
