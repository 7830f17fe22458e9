"""WILDS: camera traps at new locations (iWildCam) and satellite images of later years (FMoW).

The optional `wilds` package reads and splits the data. Reference: Koh et al. 2021 (arXiv 2012.07421); the metric of
iWildCam is macro-F1.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.classes import readable_name
from tracer.data.examples import Examples
from tracer.evaluation.suites.shift import Role, Shift, Suite
from tracer.storage.images import seen

SPLITS: dict[str, Role] = {"id_test": "id", "test": "ood"}
ANIMALS = ("a photo of {}.", "{} in the wild.")
PLACES = ("satellite photo of a {}.", "aerial photo of a {}.")


@dataclass(frozen=True)
class Inputs:
    """The images of a WILDS data set with the given indices."""

    dataset: Any
    indices: np.ndarray

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Image.Image:
        with self.dataset.get_input(int(self.indices[index])) as image:
            return seen(image)


def iwildcam(root: str | Path) -> Suite:
    """Animals at the training locations (ID) and at new ones (OOD)."""
    dataset = _dataset("iwildcam", root)
    return _suite("iWildCam", dataset, _species(Path(dataset.data_dir)), ANIMALS, metric="macro_f1")


def fmow(root: str | Path) -> Suite:
    """Land use before 2013 (ID) and from 2016 on (OOD)."""
    dataset = _dataset("fmow", root)
    names = tuple(readable_name(name) for name in import_module("wilds.datasets.fmow_dataset").categories)
    return _suite("FMoW", dataset, names, PLACES, metric="accuracy")


def _dataset(name: str, root: str | Path) -> Any:
    try:
        wilds = import_module("wilds")
    except ImportError as error:
        raise UserError(f"{name} is read by the wilds package: pip install wilds") from error
    try:
        return wilds.get_dataset(name, root_dir=str(root), download=False)
    except (FileNotFoundError, ValueError) as error:
        raise UserError(
            f"{name} is not in {root}: {error}. wilds.get_dataset({name!r}, download=True) gets it"
        ) from error


def _species(folder: Path) -> tuple[str, ...]:
    """The name of each class, from the table distributed with the data."""
    table = folder / "categories.csv"
    if not table.is_file():
        raise UserError(f"iWildCam: {table} is missing; it comes with the data and names the classes")
    with table.open(newline="", encoding="utf-8") as file:
        name_of = {
            int(row["y"]): readable_name(row["name"]) for row in csv.DictReader(file) if int(row["y"]) < 99999
        }
    return tuple(name_of[y] for y in sorted(name_of))


def _suite(name: str, dataset: Any, names: tuple[str, ...], prompts: tuple[str, ...], metric: str) -> Suite:
    if dataset.n_classes != len(names):
        raise UserError(f"{name} has {dataset.n_classes} classes and {len(names)} names for them")
    return Suite(
        name.lower(),
        tuple(
            Shift(
                name=f"{name} {split}",
                role=role,
                load=partial(_examples, name, dataset, names, split),
                classes=names,
                templates=prompts,
                metric=metric,
            )
            for split, role in SPLITS.items()
        ),
    )


def _examples(name: str, dataset: Any, names: tuple[str, ...], split: str) -> Examples:
    indices = np.flatnonzero(np.asarray(dataset.split_array) == dataset.split_dict[split])
    return Examples(
        name=f"{name} {split}",
        images=Inputs(dataset, indices),
        ids=[f"{split}/{index:07d}" for index in indices],
        labels=np.asarray(dataset.y_array)[indices].astype(np.int64),
        captions=[()] * len(indices),
        classes=names,
    )
