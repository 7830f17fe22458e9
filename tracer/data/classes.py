"""Classes: how each one is written in the data, and how a person says its name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.core.errors import UserError, unknown

Spec = str | Path | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Classes:
    """Label i is written `keys[i]` in the data and called `names[i]`."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    how: str = ""  # what had to be concluded from the data, for the report

    def labels(self, found: Iterable[str]) -> np.ndarray:
        """The label of each key found in the data; −1 for the empty key, which stands for no label."""
        place = {key: i for i, key in enumerate(self.keys)} | {"": -1}
        try:
            return np.array([place[key] for key in found], np.int64)
        except KeyError as error:
            raise unknown("class", error.args[0], self.keys) from error


def spoken(key: str) -> str:
    """A folder name as a person would say it: `golden_retriever` is a golden retriever."""
    return " ".join(key.replace("_", " ").split())


def classes(found: Iterable[str], spec: Spec | None = None) -> Classes:
    """The classes of data whose labels are written as in `found`, named by `spec`.

    `spec` is "imagenet", a list of names, a mapping from key to name, or a file that holds one of these (one
    name a line, or JSON). Without it every key found is a class, under its own name.
    """
    keys = ordered(found)
    if spec is None:
        return Classes(keys, tuple(map(spoken, keys)))
    if spec == "imagenet":
        return _imagenet(keys)
    given = _read(Path(spec)) if isinstance(spec, str | Path) else spec
    if isinstance(given, Mapping):
        strange = [key for key in keys if key not in given]
        if strange:
            raise unknown("class", strange[0], given)
        return Classes(tuple(given), tuple(given.values()))
    return _matched(keys, tuple(given))


def ordered(found: Iterable[str]) -> tuple[str, ...]:
    """The distinct keys, in order of number if all are numbers, else of spelling."""
    keys = set(found) - {""}
    numbers = all(map(_is_number, keys))
    return tuple(sorted(keys, key=lambda key: (int(key) if numbers else 0, key)))


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 10


def _matched(keys: tuple[str, ...], names: tuple[str, ...]) -> Classes:
    """Keys found in the data, matched to a list of names: by spelling, else by number, else by order."""
    said = [spoken(name).lower() for name in names]
    times = Counter(said)  # a name given twice tells nothing
    once = {name: i for i, name in enumerate(said) if times[name] == 1}
    places = {key: once[spoken(key).lower()] for key in keys if spoken(key).lower() in once}
    if keys and not places:
        if all(map(_is_number, keys)):
            return _numbered(keys, names)
        if len(keys) == len(names):
            return Classes(keys, names, how=f"class names: by order, {keys[0]} is {names[0]!r}")
    strange = [key for key in keys if key not in places]
    if strange:
        raise unknown("class", strange[0], names)
    written = list(names)
    for key, place in places.items():
        written[place] = key
    return Classes(tuple(written), names)


def _numbered(keys: tuple[str, ...], names: tuple[str, ...]) -> Classes:
    outside = [key for key in keys if int(key) >= len(names)]
    if outside:
        known = f"the {len(names)} class names: labels count from 0 to {len(names) - 1}"
        raise UserError(f"label {outside[-1]} lies outside {known}")
    zero_padded = {int(key): key for key in keys}
    written = tuple(zero_padded.get(i, str(i)) for i in range(len(names)))
    return Classes(written, names, how=f"class names: by number, 0 is {names[0]!r}")


def _imagenet(keys: tuple[str, ...]) -> Classes:
    """ImageNet's 1000 names as in open_clip, for labels written as WordNet ids, as numbers or as names."""
    from tracer.models.open_clip_compat import (
        open_clip,  # late: it is slow to import, and timm needs its cure
    )

    names = tuple(open_clip.IMAGENET_CLASSNAMES)
    from timm.data import ImageNetInfo

    synsets = tuple(ImageNetInfo().label_names())
    return Classes(synsets, names) if set(keys) <= set(synsets) else _matched(keys, names)


def _read(path: Path) -> Sequence[str] | Mapping[str, str]:
    """Class names from a file: JSON by its suffix, else one name a line."""
    if not path.is_file():
        raise unknown("class names", path, ("imagenet", *(str(near) for near in path.parent.glob("*.*"))))
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        given = json.loads(text) if path.suffix == ".json" else lines
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"the class names in {path} cannot be read: {error}") from error
    names = list(given.values()) if isinstance(given, dict) else given
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise UserError(f"{path} must hold a list of class names, or a mapping from folder to name")
    if not names:
        raise UserError(f"{path} holds no class names")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{path} names {count} classes {name!r}: captions could not tell them apart")
    return given
