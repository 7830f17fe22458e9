"""ImageNet's thousand classes: their order, the two hundred of -R and of -A, and how data write them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tracer.core.errors import UserError, unknown

CLASSES = 1000


@cache
def synsets() -> tuple[str, ...]:
    """The WordNet id of each class, in the order in which every ImageNet model scores them."""
    return tuple(_lines("imagenet_synsets.txt"))


@cache
def subset(name: Literal["all", "r", "a"]) -> tuple[int, ...]:
    """The classes that a test set asks about, as indices in ImageNet's order."""
    return tuple(range(CLASSES)) if name == "all" else tuple(map(int, _lines(f"imagenet_{name}_indices.txt")))


def places(keys: list[str], name: Literal["all", "r", "a"], where: str) -> list[int]:
    """The position of each key's class in the subset `name`; a key is a WordNet id, its lemmas, or a number.

    Numbers count in the subset if they are exactly its own, and among the thousand if they go beyond it: both
    are distributed. What could be either is refused.
    """
    chosen = subset(name)
    written = set(keys)
    if written == {str(place) for place in range(len(chosen))}:
        return [int(key) for key in keys]
    numbers = [int(key) for key in written if key.isascii() and key.isdecimal()]
    if numbers and max(numbers) < len(chosen) < CLASSES:
        raise UserError(
            f"{where}: labels up to {max(numbers)} may count its own {len(chosen)} classes or ImageNet's "
            f"{CLASSES}: write WordNet ids"
        )
    table = _spelt(chosen)
    strange = sorted(written - table.keys())
    if strange:
        raise unknown(f"class of {where}", strange[0], table)
    return [table[key] for key in keys]


def _spelt(chosen: tuple[int, ...]) -> dict[str, int]:
    """Every way to write a class, and its position in the subset; a lemma that two classes share is none."""
    called = Counter(lemmas())
    table = {lemmas()[index]: place for place, index in enumerate(chosen) if called[lemmas()[index]] == 1}
    table |= {str(index): place for place, index in enumerate(chosen)}
    return table | {synsets()[index]: place for place, index in enumerate(chosen)}


@cache
def lemmas() -> tuple[str, ...]:
    """What WordNet calls each class: all its synonyms, joined by commas."""
    called = dict(line.split("\t") for line in _lines("imagenet_synset_to_lemma.txt"))
    return tuple(called[synset] for synset in synsets())


def _lines(name: str) -> list[str]:
    """The lines of a data file that timm brings, found without importing timm, which is slow."""
    spec = find_spec("timm")
    if spec is None or spec.origin is None:
        raise UserError("ImageNet's class order comes with timm: pip install timm")
    return (Path(spec.origin).parent / "data" / "_info" / name).read_text(encoding="utf-8").splitlines()
