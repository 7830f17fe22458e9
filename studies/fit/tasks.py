"""The tasks of the study: what a model is fitted to, what it should keep, and test data for the study alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tracer.data.emojishift import emoji_kinds, emoji_names
from tracer.data.examples import Examples, Pixels
from tracer.data.sources import load

TRAIN, TEST, RETAIN = (
    1200,
    1000,
    800,
)  # images at most; retained ones for the search, and as many for the test


@dataclass(frozen=True)
class Data:
    """What the search is given, and what only the study scores on."""

    train: Examples
    retain: Examples
    test: Examples
    test_retain: Examples


@dataclass(frozen=True)
class Task:
    """A pretrained model (`starts`) and its data for a seed."""

    start: str
    data: Callable[[int], Data]


def digits(kind: str) -> Task:
    """Digits in colour for a model that reads grey ones."""

    def data(seed: int) -> Data:
        kept = load("digits", split="test")
        first, second = some(kept, 2 * RETAIN, seed, parts=2)
        train, test = load(kind, split="train"), load(kind, split="test")
        return Data(some(train, TRAIN, seed)[0], first, some(test, TEST, seed)[0], second)

    return Task("digits", data)


def emoji(regime: str, style: str) -> Task:
    """Kinds of emoji in one style, for a model that names emoji; the seed is the fold."""

    def data(seed: int) -> Data:
        fold = seed % 5
        first, second = some(emoji_names(regime, "test"), 2 * RETAIN, seed, parts=2)  # pyright: ignore[reportArgumentType]
        train = joined(*(emoji_kinds(style, fold, part) for part in ("train", "val")))
        return Data(train, first, emoji_kinds(style, fold, "test"), second)

    return Task(regime, data)


def some(examples: Examples, count: int, seed: int, parts: int = 1) -> tuple[Examples, ...]:
    """At most `count` random examples, in equal parts."""
    order = np.random.default_rng(seed).permutation(len(examples))[:count]
    return tuple(examples.take(np.sort(part)) for part in np.array_split(order, parts))


def joined(first: Examples, second: Examples) -> Examples:
    """Two sets of pictures in memory as one."""
    assert isinstance(first.images, Pixels)
    assert isinstance(second.images, Pixels)
    return replace(
        first,
        images=Pixels(np.concatenate([first.images.array, second.images.array])),
        ids=[*first.ids, *second.ids],
        labels=np.concatenate([first.labels, second.labels]),
        captions=[*first.captions, *second.captions],
    )


TASKS = {
    "digits: colour": digits("digits:colour"),
    "digits: group": digits("digits:group"),
    "digits in colour": digits("digits:coloured"),
    "emoji, strong: twemoji": emoji("strong", "twemoji"),
    "emoji, weak: twemoji": emoji("weak", "twemoji"),
    "emoji, strong: openmoji-color": emoji("strong", "openmoji-color"),
    "emoji, strong: openmoji-black": emoji("strong", "openmoji-black"),
    "emoji, weak: openmoji-color": emoji("weak", "openmoji-color"),
}
