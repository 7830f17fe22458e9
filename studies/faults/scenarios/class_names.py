"""Class names and labels: other case, spaces, punctuation, numbers, Unicode; and the labels of other data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

import numpy as np

from studies.faults.verdict import Verdict, judged
from studies.faults.workspace import Workspace
from tracer.data.classes import classes, normal_name
from tracer.data.examples import Examples, Pixels
from tracer.data.split import align_labels, hold_out

WORDS = (
    "hot dog",
    "hot_dog",
    "Hot Dog",
    "hot-dog",
    "hotdog",
    "cat",
    "Cat ",
    "cat.",
    "C",
    "C++",
    "C#",
    "1",
    "01",
    "1.0",
)
WORDS += (
    "-1",
    "٣",
    "３",
    "café",
    "cafe\u0301",
    "ﬁsh",
    "fish",
    "Straße",
    "STRASSE",
    "n01440764",
    "a\u200bb",
    "ab",
    "…",
)
ALPHABET = "aAbB_- .1２é\t\u00a0"


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """No two keys share a class, no key is dropped, and labels of other data point to the class of that name."""
    for number in range(workspace.count(100, 8000)):
        yield judged(f"naming {number}", partial(_naming, _names(workspace.rng)))
    for _ in range(workspace.count(100, 8000)):
        own, trained = _names(workspace.rng), _names(workspace.rng)
        yield judged(f"labels {own} for {trained}", partial(_aligned, own, trained, workspace.rng))
    for number in range(workspace.count(20, 2000)):
        yield judged(f"held out {number}", partial(_held_out, workspace.rng))


def _names(rng: Random) -> list[str]:
    made = ["".join(rng.choices(ALPHABET, k=rng.randint(1, 4))) for _ in range(2)]
    names = [name for name in (*rng.sample(WORDS, 4), *made) if name.strip()]
    return list(dict.fromkeys(rng.sample(names, rng.randint(1, len(names)))))


def _naming(keys: list[str]) -> None:
    named = classes(keys)
    labels = named.labels(keys)
    assert len(set(labels.tolist())) == len(keys) == len(set(named.names)), f"{keys} became {named.names}"
    assert len({normal_name(name) for name in named.names}) == len(keys), f"{keys} became {named.names}"


def _examples(labels: np.ndarray, names: tuple[str, ...]) -> Examples:
    count = len(labels)
    ids = [f"{i}-{names[label]}" for i, label in enumerate(labels)]
    return Examples("x", Pixels(np.zeros((count, 1, 1, 3), np.uint8)), ids, labels, [()] * count, names)


def _aligned(own: list[str], trained: list[str], rng: Random) -> None:
    labels = np.array([rng.randrange(len(own)) for _ in range(8)])
    result = align_labels(_examples(labels, tuple(own)), trained)
    assert len(result) == len(labels)
    pairs = {(own[label], result.classes[other]) for label, other in zip(labels, result.labels, strict=True)}
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    for one, other in pairs:
        assert one == other or normal_name(one) == normal_name(other), f"{one!r} became {other!r}"
        assert one == other or one not in trained, f"{one!r} became {other!r}, and is a class itself"


def _held_out(rng: Random) -> None:
    labels = np.array([rng.randrange(4) for _ in range(rng.randint(1, 40))])
    examples = _examples(labels, ("a", "b", "c", "d"))
    train, held = hold_out(examples, rng.choice((None, 0.0, 0.01, 0.3, 0.99)), rng.randrange(9))
    assert not set(train.ids) & set(held.ids), "an image is trained on and held out"
    assert sorted((*train.ids, *held.ids)) == sorted(examples.ids), "an image was dropped"
    assert set(train.labels.tolist()) == set(labels.tolist()), "a class has nothing to train on"
    for part in (train, held):
        assert all(
            name.endswith(part.classes[label]) for name, label in zip(part.ids, part.labels, strict=True)
        )
