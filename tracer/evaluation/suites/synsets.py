"""ImageNet's 1000 classes: their order, the 200 of ImageNet-R and -A, and their spellings in data."""

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
    """The WordNet id of each class, in ImageNet's usual order."""
    return tuple(_lines("imagenet_synsets.txt"))


@cache
def subset(name: Literal["all", "r", "a"]) -> tuple[int, ...]:
    """The classes of a test set, as indices in ImageNet's order."""
    return tuple(range(CLASSES)) if name == "all" else tuple(map(int, _lines(f"imagenet_{name}_indices.txt")))


def positions(keys: list[str], name: Literal["all", "r", "a"], where: str) -> list[int]:
    """The position of each key's class in the subset `name`; a key is a WordNet id, its lemmas, or a number.

    Numbers are positions in the subset if they are exactly 0 to its size − 1, and indices of the 1000 classes if the
    largest exceeds the subset: both are in use. Ambiguous numbers are an error.
    """
    indices = subset(name)
    distinct = set(keys)
    if distinct == {str(position) for position in range(len(indices))}:
        return [int(key) for key in keys]
    numbers = [int(key) for key in distinct if key.isascii() and key.isdecimal()]
    if numbers and max(numbers) < len(indices) < CLASSES:
        raise UserError(
            f"{where}: labels up to {max(numbers)} may count its own {len(indices)} classes or ImageNet's "
            f"{CLASSES}: write WordNet ids"
        )
    table = _spellings(indices)
    foreign = sorted(distinct - table.keys())
    if foreign:
        raise unknown(f"class of {where}", foreign[0], table)
    return [table[key] for key in keys]


def _spellings(indices: tuple[int, ...]) -> dict[str, int]:
    """All spellings of the classes, with their position in the subset; lemmas shared by two classes are left out."""
    counts = Counter(lemmas())
    table = {lemmas()[index]: i for i, index in enumerate(indices) if counts[lemmas()[index]] == 1}
    table |= {str(index): i for i, index in enumerate(indices)}
    return table | {synsets()[index]: i for i, index in enumerate(indices)}


@cache
def lemmas() -> tuple[str, ...]:
    """The WordNet lemmas of each class: all its synonyms, joined by commas."""
    lemma = dict(line.split("\t") for line in _lines("imagenet_synset_to_lemma.txt"))
    return tuple(lemma[synset] for synset in synsets())


def _lines(name: str) -> list[str]:
    """The lines of a data file of timm, found without importing timm, which is slow."""
    spec = find_spec("timm")
    if spec is None or spec.origin is None:
        raise UserError("ImageNet's class order comes with timm: pip install timm")
    return (Path(spec.origin).parent / "data" / "_info" / name).read_text(encoding="utf-8").splitlines()
