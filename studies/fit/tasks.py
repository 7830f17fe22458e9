"""The tasks of the study: what a model is fitted to, what it should keep, and test data for the study alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from studies.choices.sources import read
from studies.fit.things import LATER, joined, known_things, of_classes
from studies.photoshift.bridge import PROMPT
from studies.photoshift.tasks import ANIMALS, PHOTOS, VEHICLES, kept_photos, photos_of
from studies.photoshift.tasks import things as drawn_things
from tracer.data.embedded.emojishift import Regime, emoji_kinds, emoji_names
from tracer.data.examples import Examples
from tracer.data.sources import load

TRAIN, TEST, RETAIN = 1000, 540, 400  # images at most; retained ones for the search, and as many for the test
TOWER_TEST = 240  # test images for the towers, which are slow
NAMES = 300  # emoji whose naming is retained
DEFAULT_RATE = 3e-4  # of our recipes for small models, and of PhotoShift
# Of a finetuning. PhotoShift's towers have BatchNorm, whose statistics it keeps.
TINY: dict[str, Any] = {"steps": 20, "batch": 64}
TOWERS: dict[str, Any] = {"steps": 24, "batch": 48, "batchnorm": "keep"}


@dataclass(frozen=True)
class Data:
    """What the search is given, and what only the study scores on."""

    train: Examples
    retain: Examples
    test: Examples
    test_retain: Examples


@dataclass(frozen=True)
class Task:
    """A pretrained model (`starts`) and its data for a seed; downloads go to a cache folder."""

    start: str
    data: Callable[[int, Path], Data]
    settings: Mapping[str, Any] = field(default_factory=lambda: TINY)
    rates: tuple[float, ...] = (DEFAULT_RATE, 1e-3)  # of single methods


def digits(kind: str) -> Task:
    """Digits in colour for a model that reads grey ones."""

    def data(seed: int, cache: Path) -> Data:
        del cache
        (train,) = some(load(kind, split="train"), TRAIN, seed)
        (test,) = some(load(kind, split="test"), TEST, seed)
        return Data(train, *_retained(load("digits", split="test"), test, seed))

    return Task("digits", data)


def emoji(regime: Regime, style: str) -> Task:
    """Kinds of emoji in one style, for a model that names emoji; the seed is the fold."""

    def data(seed: int, cache: Path) -> Data:
        del cache
        train, *rest = (emoji_kinds(style, seed % 5, part) for part in ("train", "val", "test"))
        names = emoji_names(regime, "test")
        numbers = np.random.default_rng(seed).choice(np.unique(names.labels), NAMES, replace=False)
        retained = replace(of_classes(names, tuple(map(int, numbers))), templates=("{}",))
        return Data(train, *_retained(retained, joined(*rest), seed))

    return Task(regime, data)


def things(name: str, labels: range | tuple[int, ...]) -> Task:
    """Clothes or vehicles for a model that knows digits, some clothes and animals."""

    def data(seed: int, cache: Path) -> Data:
        examples = read(name, cache)
        pool = of_classes(examples.take(np.arange(LATER, len(examples))), labels)
        both = some(pool, TRAIN + TEST, seed)[0]
        order = np.random.default_rng(seed).permutation(len(both))
        train, test = both.take(order[:TRAIN]), both.take(order[TRAIN:])
        return Data(train, *_retained(known_things(cache, later=True, count=5 * RETAIN), test, seed))

    return Task("things", data)


def towers(learned: Callable[[Path, bool], Examples], shown: tuple[str, ...]) -> Task:
    """Photographs or drawings for the pretrained towers of PhotoShift; photographs are retained, among ten names."""

    def data(seed: int, cache: Path) -> Data:
        (train,), (test,) = (
            some(learned(cache, False), TRAIN, seed),
            some(learned(cache, True), TOWER_TEST, seed),
        )
        parts = (train, *_retained(kept_photos(shown)(cache), test, seed))
        return Data(*(replace(part, templates=(PROMPT,)) for part in parts))

    return Task("towers", data, TOWERS, (DEFAULT_RATE,))


def some(examples: Examples, count: int, seed: int, parts: int = 1) -> tuple[Examples, ...]:
    """At most `count` random examples, in equal parts."""
    order = np.random.default_rng(seed).permutation(len(examples))[:count]
    return tuple(examples.take(np.sort(part)) for part in np.array_split(order, parts))


def _retained(pool: Examples, test: Examples, seed: int) -> tuple[Examples, Examples, Examples]:
    """What the search is given to retain, the test data, and what the study tests retention on."""
    given, own = some(pool, 2 * RETAIN, seed, parts=2)
    return given, test, own


TASKS = {
    "digits: colour": digits("digits:colour"),
    "digits: group": digits("digits:group"),
    "digits: value": digits("digits:coloured"),
    "Fashion-MNIST": things("fashion", range(10)),
    "CIFAR-10: vehicles": things("cifar", (0, 1, 8, 9)),
    "emoji, strong: twemoji": emoji("strong", "twemoji"),
    "emoji, weak: twemoji": emoji("weak", "twemoji"),
    "emoji, strong: openmoji": emoji("strong", "openmoji-color"),
    "towers: animals": towers(photos_of(ANIMALS), VEHICLES),
    "towers: drawn things": towers(drawn_things, PHOTOS),
}
