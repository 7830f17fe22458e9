"""Class labels: the keys that stand for them in the data, and the names used in prompts and tables."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.core.errors import UserError, suggestion, unknown
from tracer.data.formats.values import distinct_keys, says_missing

Spec = str | Path | Sequence[str] | Mapping[str, str]

NUMBER = re.compile(r"([-+]?)([0-9]+)(\.[0-9]+)?")
WHOLE = re.compile(r"([0-9]{1,9})(?:\.0*)?")  # a label such as 7, 07, or 7.0 as spreadsheets write it
SYNSET = re.compile(r"n[0-9]{8}")  # a WordNet id, as ImageNet's folders are called
ANSWERS = frozenset(("true", "false", "yes", "no", "positive", "negative", "pos", "neg"))


@dataclass(frozen=True)
class Classes:
    """Label i is written `keys[i]` in the data and has the name `names[i]`."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    how: str = ""  # how names were matched to keys, for the report; empty if nothing was inferred
    warning: str = ""  # if the names are codes, which prompts should not hold

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


def normal_name(name: str) -> str:
    """The spelling by which two names are compared: without case, punctuation, repeated spaces and what is invisible.

    Signs that carry meaning (C++, C#) stay. Numbers are compared by value: 01, 1 and 1.0 are one name, −1 is another.
    """
    name = visible(name)
    if number := NUMBER.fullmatch(name):
        sign, whole, fraction = number.groups("")
        decimals = fraction.rstrip("0").removesuffix(".")
        return f"{sign.removeprefix('+')}{whole.lstrip('0') or '0'}{decimals}"
    spaced = "".join(
        " " if unicodedata.category(c)[0] in "PZ" and c not in "#%&*@" else c for c in name.casefold()
    )
    return " ".join(spaced.split()) or readable_name(name)


def visible(text: str) -> str:
    """The text in one form of Unicode, without characters that have no width, such as U+200B and direction marks."""
    normal = unicodedata.normalize("NFKC", text)
    return "".join(c for c in normal if unicodedata.category(c) != "Cf" and not "\ufe00" <= c <= "\ufe0f")


def classes(keys: Iterable[str], spec: Spec | None = None, *, numbered: bool = False) -> Classes:
    """The classes of data with these label keys, named by `spec`.

    `spec` is "imagenet", a list of names, a mapping from key to name, or a file that holds one of these (one
    name a line, or JSON). Without it every key is a class, under its own name. `numbered` keys are known to count the
    names of a list, which may be numbers themselves. Raises UserError if two classes would have one name.
    """
    distinct = sort_keys(keys)
    if spec is None:
        refuse_one_name(distinct, normal_name)
        return Classes(distinct, tuple(map(readable_name, distinct)), warning=_warning(distinct))
    if spec == "imagenet":
        return _imagenet(distinct)
    names = read_names(spec)
    if isinstance(names, Mapping):
        unnamed = [key for key in distinct if key not in names]
        if unnamed:
            hint = suggestion(unnamed[0], names)
            raise UserError(
                f"the mapping of class names lacks {unnamed[0]!r}, and must hold every class: {hint}"
            )
        refuse_one_name(tuple(names.values()))
        return Classes(tuple(names), tuple(names.values()))
    refuse_one_name(tuple(names))
    return _match(distinct, tuple(names), numbered)


def refuse_one_name(names: Sequence[str], normal: Callable[[str], str] | None = None) -> None:
    """Raise UserError if two of the names are one in the form `normal`; by default in a prompt, which has no case."""
    first: dict[str, str] = {}
    for name in names:
        form = (normal or _in_a_prompt)(name)
        if form in first:
            mapping = "--classes FILE, a JSON mapping from every label to its name"
            hint = f"rename one, merge them, or tell them apart with {mapping}"
            raise UserError(f"two classes have one name, {first[form]!r} and {name!r}: {hint}")
        first[form] = name


def _in_a_prompt(name: str) -> str:
    return readable_name(visible(name)).casefold()


def _warning(keys: tuple[str, ...]) -> str:
    """What is wrong with keys that are numbers or WordNet ids as class names, or no labels."""
    if missing := next(filter(says_missing, keys), None):
        hint = "leave the rows without a label out, or call the class something else"
        return f"the class {missing!r} looks like an empty cell of a program: {hint}"
    if keys and all(map(NUMBER.fullmatch, keys)):
        hint = "--classes FILE names them, one name a line, the first for label 0"
        return f"the classes are numbers, and prompts read 'a photo of a {keys[-1]}': {hint}"
    if keys and all(map(SYNSET.fullmatch, keys)):
        hint = "--classes imagenet names ImageNet's, --classes FILE.json others (a mapping from id to name)"
        return f"the classes are WordNet ids, and prompts read 'a photo of a {keys[0]}': {hint}"
    if len(keys) > 1 and (kind := _codes(keys)):
        hint = "--classes FILE.json gives names (a mapping from label to name)"
        return f"the classes are {kind}, and prompts read 'a photo of a {readable_name(keys[0])}': {hint}"
    if several := _several_labels(keys):
        hint = "each image has one class, so write the one that is meant, or describe the images by captions"
        return f"the class {several!r} looks like several labels in one cell: {hint}"
    if number := next(filter(NUMBER.fullmatch, keys), None):
        name = next(key for key in keys if not NUMBER.fullmatch(key))
        return f"some classes are numbers and others names, such as {number!r} and {name!r}: are they of one kind?"
    return ""


def _several_labels(keys: tuple[str, ...]) -> str:
    """A key that looks like a list of classes: cat|dog beside cat, "cat, dog" beside both, ['cat', 'dog']."""
    for key in keys:
        if key[:1] in "[{(" and key[-1:] in ")}]" and "," in key:
            return key
    for mark in "|;,+&/":
        parts = {key: {part.strip() for part in key.split(mark)} for key in keys if mark in key}
        counts = Counter(
            part for own in (*parts.values(), {key for key in keys if key not in parts}) for part in own
        )
        # Names may hold a comma or an ampersand: "crane, bird" is one, unless there are both a crane and a bird.
        every = mark in ",+&/"
        for key, own in parts.items():
            repeated = [part in keys if every else counts[part] > 1 for part in own]
            if all(repeated) if every else any(repeated):
                return key
    return ""


def _codes(keys: tuple[str, ...]) -> str:
    """What the keys are, if they say nothing of what is in the images: class_1, 1f3a9c, yes; else empty."""
    if len({re.sub("[0-9]+", "", key) for key in keys}) == 1:
        return "numbered, not named"
    if {key.casefold() for key in keys} <= ANSWERS:
        return "answers without their question"
    if all(re.search("[0-9]", key) and not re.search(r"[^\W\d_]{3}", key) for key in keys):
        return "codes"
    return ""


def sort_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The distinct keys without the empty one, sorted as numbers if all are numbers, else as text."""
    distinct = set(keys) - {""}
    numbers = all(map(WHOLE.fullmatch, distinct))
    return tuple(sorted(distinct, key=lambda key: (_number(key) if numbers else 0, key)))


def _number(key: str) -> int:
    """The value of a key that matches WHOLE."""
    return int(key.partition(".")[0])


def _match(keys: tuple[str, ...], names: tuple[str, ...], numbered: bool = False) -> Classes:
    """Match the keys of the data to a list of names: by spelling, else by number, else by order.

    Keys that are `numbered` are matched by number first. Raises UserError if both ways lead to different names and the
    list is sorted as text (0, 1, 10, 2), as where folders called by numbers were listed: the keys then count them.
    """
    label_of = match_names(keys, names)
    if all(WHOLE.fullmatch(key) and _number(key) < len(names) for key in keys):
        if numbered:
            return _match_numbers(keys, names)
        other = next((key for key in keys if label_of.get(key, _number(key)) != _number(key)), None)
        if other is not None and len(label_of) == len(keys) and _sorted_as_text(names):
            hint = "a JSON mapping from label to name leaves no doubt"
            counted = names[_number(other)]
            raise UserError(
                f"label {other} may be the class {other!r} or, counted from 0, the class {counted!r}: {hint}"
            )
    if keys and not label_of:
        if all(map(WHOLE.fullmatch, keys)):
            return _match_numbers(keys, names)
        if all(map(NUMBER.fullmatch, keys)):
            wrong = next(key for key in keys if not WHOLE.fullmatch(key))
            raise UserError(f"label {wrong} is none of the {len(names)} class names, which count from 0")
        if len(keys) == len(names):
            how = f"class names: by order, {keys[0]} is {names[0]!r}"
            hint = "a JSON mapping from label to name leaves no doubt"
            return Classes(keys, names, how, f"{how} and {keys[-1]} is {names[-1]!r}: {hint}")
    unmatched = [key for key in keys if key not in label_of]
    if unmatched:
        raise unknown("class", unmatched[0], names)
    all_keys = list(names)
    for key, label in label_of.items():
        all_keys[label] = key
    return Classes(tuple(all_keys), names)


def _sorted_as_text(names: Sequence[str]) -> bool:
    """Whether the names are in the order of text, which is not that of the numbers among them: 0, 1, 10, 2."""
    numbers = [_number(name) for name in names if WHOLE.fullmatch(name)]
    return list(names) == sorted(names) and numbers != sorted(numbers)


def match_names(keys: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """The index in `names` of each key that is one of them: as it is written, else by its `normal_name`.

    A key that could be several names is left out. Raises UserError if two keys are the same name.
    """
    exact, normal = _unique(names), _unique([normal_name(name) for name in names])
    label_of: dict[str, int] = {}
    key_of: dict[int, str] = {}
    for key in keys:
        label = exact.get(key, normal.get(normal_name(key)))
        if label is None:
            continue
        label_of[key] = label
        if (other := key_of.setdefault(label, key)) != key:
            raise UserError(f"{other!r} and {key!r} are both the class {names[label]!r}: rename one")
    return label_of


def _unique(names: Sequence[str]) -> dict[str, int]:
    """The index of each name that occurs once."""
    counts = Counter(names)
    return {name: i for i, name in enumerate(names) if counts[name] == 1}


def _match_numbers(keys: tuple[str, ...], names: tuple[str, ...]) -> Classes:
    outside = [key for key in keys if _number(key) >= len(names)]
    if outside:
        valid = f"the {len(names)} class names: labels count from 0 to {len(names) - 1}"
        raise UserError(f"label {outside[-1]} lies outside {valid}")
    spelling = {_number(key): key for key in keys}  # keys may be padded with zeros
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


def read_names(spec: Spec) -> Sequence[str] | Mapping[str, str]:
    """The names that `spec` stands for: those of a file as it is now, JSON if its suffix says so, else one a line."""
    if not isinstance(spec, str | Path):
        return spec
    path = Path(spec)
    if not path.is_file():
        raise unknown("class names", path, ("imagenet", *(str(near) for near in path.parent.glob("*.*"))))
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        content = json.loads(text, object_pairs_hook=distinct_keys) if path.suffix == ".json" else lines
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
