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

from tracer.core.errors import unknown
from tracer.data.examples import Examples, Pixels
from tracer.data.formats.idx import Split, arrays, digit_examples

Task = Literal["digit", "colour", "group"]
COLOURS = ("red", "blue")
GROUPS = ("low", "high")  # 0 to 4, and 5 to 9
CORRELATION = 0.95  # the probability that the colour tells the group
CHANNELS = np.array([0, 2])  # of red and blue in RGB


def digits(split: Split = "train", folder: Path | None = None) -> Examples:
    """Grey handwritten digits with the classes "0" to "9": the subset, or all of MNIST from a folder of idx files."""
    grey, labels = _grey(split, folder)
    return digit_examples(f"digits/{split}", grey, labels)


def coloured_digits(
    split: Split = "train", folder: Path | None = None, *, flipped: bool = False, task: Task = "digit"
) -> Examples:
    """Digits in a colour that mostly predicts the group of the digit: 95 % of 0 to 4 are red, 95 % of 5 to 9 blue.

    `flipped` exchanges the two colours: a test for models that learnt the colour instead of the shape. `task` selects
    the label: the digit, its colour or its group. Uses the subset, or all of MNIST in `folder`.
    """
    if task not in get_args(Task):
        raise unknown("task", task, get_args(Task))
    grey, digit = _grey(split, folder)
    group = (digit >= 5).astype(np.int64)
    draws = np.random.default_rng([0, get_args(Split).index(split)]).random(len(digit))
    colour = group ^ (draws >= CORRELATION) ^ flipped
    labels, classes = {"digit": (digit, None), "colour": (colour, COLOURS), "group": (group, GROUPS)}[task]
    plain = digit_examples(f"digits:{'flipped' if flipped else 'coloured'}/{split}", grey, labels)
    pixels = np.zeros((*grey.shape, 3), np.uint8)
    pixels[np.arange(len(grey)), :, :, CHANNELS[colour]] = grey
    return replace(
        plain,
        images=Pixels(pixels),
        # The colour is part of the id, so that the fingerprint depends on it.
        ids=[f"{name}:{COLOURS[index]}" for name, index in zip(plain.ids, colour, strict=True)],
        classes=classes or plain.classes,
        templates=("a {} digit",) if classes else plain.templates,
    )


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
