"""The digits that ship with the package, and their coloured variant.

A subset of MNIST, 10 000 training and 2 000 test images, balanced over the ten digits.
Y. LeCun, C. Cortes, C. Burges, *The MNIST database of handwritten digits*; licence CC BY-SA 3.0.
The file was built from the original ones by `studies/digits/build.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples, Pixels
from tracer.data.formats.idx import Split, arrays, digit_examples

Task = Literal["digit", "colour", "group"]
COLOURS = ("red", "blue")
GROUPS = ("low", "high")  # 0 to 4, and 5 to 9
CHANNELS = np.array([0, 2])  # of red and blue in RGB


def digits(split: Split = "train", folder: Path | None = None) -> Examples:
    """Grey handwritten digits with the classes "0" to "9": the subset, or all of MNIST from a folder of idx files."""
    grey, labels = _grey(split, folder)
    return digit_examples(f"digits/{split}", grey, labels)


def coloured_digits(
    split: Split = "train",
    *,
    correlation: float = 0.95,
    flipped: bool = False,
    seed: int = 0,
    task: Task = "digit",
    folder: Path | None = None,
) -> Examples:
    """Digits in a colour that predicts the group of the digit with probability `correlation`.

    0 to 4 are red and 5 to 9 blue, each with that probability. `flipped` exchanges the two colours: a test for
    models that learnt the colour instead of the shape. `task` selects the label: the digit, its colour or its
    group. Uses the subset, or all of MNIST in `folder`.
    """
    if not 0 <= correlation <= 1:
        raise UserError(f"correlation {correlation} is not a probability: choose one between 0 and 1")
    if task not in get_args(Task):
        raise unknown("task", task, get_args(Task))
    grey, digit = _grey(split, folder)
    group = (digit >= 5).astype(np.int64)
    draws = np.random.default_rng([seed, get_args(Split).index(split)]).random(len(digit))
    colour = group ^ (draws >= correlation) ^ flipped
    labels, classes = {"digit": (digit, None), "colour": (colour, COLOURS), "group": (group, GROUPS)}[task]
    plain = digit_examples(f"digits:{'flipped' if flipped else 'coloured'}/{split}", grey, labels)
    return replace(
        plain,
        images=Pixels(_paint(grey, CHANNELS[colour])),
        # The colour is part of the id, so that the fingerprint depends on it.
        ids=[f"{name}:{COLOURS[index]}" for name, index in zip(plain.ids, colour, strict=True)],
        classes=classes or plain.classes,
        templates=("a {} digit",) if classes else plain.templates,
    )


def _paint(grey: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """Each grey image [h, w] as RGB [h, w, 3], its values in one channel only."""
    pixels = np.zeros((*grey.shape, 3), np.uint8)
    pixels[np.arange(len(grey)), :, :, channel] = grey
    return pixels


@cache
def _grey(split: Split, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    if split not in get_args(Split):
        raise unknown("split", split, get_args(Split))
    if folder is not None:
        return arrays(folder, split)
    with (
        as_file(files("tracer.data.embedded") / "digits.npz") as path,
        np.load(path, allow_pickle=False) as archive,
    ):
        return archive[f"{split}_images"], archive[f"{split}_labels"]
