"""Class labels: the keys that stand for them in the data, and the names used in prompts and tables."""

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
    """Label i is written `keys[i]` in the data and has the name `names[i]`."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    how: str = ""  # how names were matched to keys, for the report; empty if nothing was inferred

    def labels(self, keys: Iterable[str]) -> np.ndarray:
        """The label of each key; −1 for the empty key, which means no label."""
        label_of = {key: i for i, key in enumerate(self.keys)} | {"": -1}
        try:
            return np.array([label_of[key] for key in keys], np.int64)
        except KeyError as error:
            raise unknown("class", error.args[0], self.keys) from error


def readable_name(key: str) -> str:
    """A folder name with spaces for underscores: `golden_retriever` becomes `golden retriever`."""
    return " ".join(key.replace("_", " ").split())


def classes(keys: Iterable[str], spec: Spec | None = None) -> Classes:
    """The classes of data with these label keys, named by `spec`.

    `spec` is "imagenet", a list of names, a mapping from key to name, or a file that holds one of these (one
    name a line, or JSON). Without it every key is a class, under its own name.
    """
    distinct = sort_keys(keys)
    if spec is None:
        return Classes(distinct, tuple(map(readable_name, distinct)))
    if spec == "imagenet":
        return _imagenet(distinct)
    names = _read(Path(spec)) if isinstance(spec, str | Path) else spec
    if isinstance(names, Mapping):
        unnamed = [key for key in distinct if key not in names]
        if unnamed:
            raise unknown("class", unnamed[0], names)
        return Classes(tuple(names), tuple(names.values()))
    return _match(distinct, tuple(names))


def sort_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The distinct keys without the empty one, sorted as numbers if all are numbers, else as text."""
    distinct = set(keys) - {""}
    numbers = all(map(_is_number, distinct))
    return tuple(sorted(distinct, key=lambda key: (int(key) if numbers else 0, key)))


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 10


def _match(keys: tuple[str, ...], names: tuple[str, ...]) -> Classes:
    """Match the keys of the data to a list of names: by spelling, else by number, else by order."""
    spellings = [readable_name(name).lower() for name in names]
    counts = Counter(spellings)  # a repeated name is ambiguous
    unique = {name: i for i, name in enumerate(spellings) if counts[name] == 1}
    spelling_of = {key: readable_name(key).lower() for key in keys}
    label_of = {key: unique[spelling] for key, spelling in spelling_of.items() if spelling in unique}
    if keys and not label_of:
        if all(map(_is_number, keys)):
            return _match_numbers(keys, names)
        if len(keys) == len(names):
            return Classes(keys, names, how=f"class names: by order, {keys[0]} is {names[0]!r}")
    unmatched = [key for key in keys if key not in label_of]
    if unmatched:
        raise unknown("class", unmatched[0], names)
    all_keys = list(names)
    for key, label in label_of.items():
        all_keys[label] = key
    return Classes(tuple(all_keys), names)


def _match_numbers(keys: tuple[str, ...], names: tuple[str, ...]) -> Classes:
    outside = [key for key in keys if int(key) >= len(names)]
    if outside:
        valid = f"the {len(names)} class names: labels count from 0 to {len(names) - 1}"
        raise UserError(f"label {outside[-1]} lies outside {valid}")
    spelling = {int(key): key for key in keys}  # keys may be padded with zeros
    all_keys = tuple(spelling.get(i, str(i)) for i in range(len(names)))
    return Classes(all_keys, names, how=f"class names: by number, 0 is {names[0]!r}")


def _imagenet(keys: tuple[str, ...]) -> Classes:
    """ImageNet's 1000 class names from open_clip, for keys that are WordNet ids, numbers or names."""
    # Imported late because it is slow, and before timm, which needs torchvision as repaired there.
    from tracer.models.open_clip_compat import open_clip

    names = tuple(open_clip.IMAGENET_CLASSNAMES)
    from timm.data import ImageNetInfo

    synsets = tuple(ImageNetInfo().label_names())
    return Classes(synsets, names) if set(keys) <= set(synsets) else _match(keys, names)


def _read(path: Path) -> Sequence[str] | Mapping[str, str]:
    """Class names from a file: JSON if its suffix says so, else one name a line."""
    if not path.is_file():
        raise unknown("class names", path, ("imagenet", *(str(near) for near in path.parent.glob("*.*"))))
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        content = json.loads(text) if path.suffix == ".json" else lines
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"the class names in {path} cannot be read: {error}") from error
    names = list(content.values()) if isinstance(content, dict) else content
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise UserError(f"{path} must hold a list of class names, or a mapping from folder to name")
    if not names:
        raise UserError(f"{path} holds no class names")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{path} names {count} classes {name!r}: captions could not tell them apart")
    return content
