"""Digits, clothes and CIFAR's animals, which one of the models is pretrained on, and what it has not met: vehicles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from studies.choices.sources import read
from tracer.data.examples import Examples, Pixels

PRETRAINING = (
    12_000  # first images of each data set, for pretraining; tasks and tests use those from LATER on
)
LATER = 40_000
KNOWN = {
    "mnist": range(10),
    "fashion": range(5),  # t-shirt to coat; shoes and bags are new
    "cifar": range(2, 8),  # bird to horse; aeroplane, car, ship and truck are new
}


def of_classes(examples: Examples, labels: range | tuple[int, ...]) -> Examples:
    """The examples with these labels, numbered anew."""
    rows = np.flatnonzero(np.isin(examples.labels, labels))
    number = {label: place for place, label in enumerate(labels)}
    return replace(
        examples.take(rows),
        labels=np.array([number[int(label)] for label in examples.labels[rows]]),
        classes=tuple(examples.classes[label] for label in labels),
    )


def joined(*parts: Examples) -> Examples:
    """Several sets of pictures in memory as one, over the classes of all."""
    classes = tuple(dict.fromkeys(name for part in parts for name in part.classes))
    labels = [np.array([classes.index(part.classes[label]) for label in part.labels]) for part in parts]
    return replace(
        parts[0],
        images=Pixels(
            np.concatenate([np.stack([np.asarray(image) for image in part.images]) for part in parts])
        ),
        ids=[name for part in parts for name in part.ids],
        labels=np.concatenate(labels),
        captions=[texts for part in parts for texts in part.captions],
        classes=classes,
    )


def known_things(cache: Path, later: bool = False, count: int = PRETRAINING) -> Examples:
    """Images of the classes that the model is pretrained on; `later`: others, for tasks and tests."""
    first = LATER if later else 0
    parts = (
        of_classes(read(name, cache).take(np.arange(first, first + count)), kept)
        for name, kept in KNOWN.items()
    )
    return replace(joined(*parts), name="things")
