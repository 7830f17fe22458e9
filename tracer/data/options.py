"""Options for reading a data source; the names of splits, and the choice of the one that is read, for every format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec, visible

SYNONYMS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "eval", "evaluation"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
SPLITS = ("train", "val", "test")
# Never taken for splits, since they are codes of languages too, but refused where they seem to be meant.
ABBREVIATIONS = {"tr": "train", "trn": "train", "va": "val", "te": "test", "tst": "test"}
COLUMNS = ("image", "caption", "label")  # options that name a column


@dataclass(frozen=True)
class Options:
    """The columns, the separator of a table, the class names, the split to read, and the white of deep images.

    None means: detect it; "none" as a column: use none. Data without splits count as any split that is requested.
    """

    image: str | None = None
    caption: str | None = None
    label: str | None = None
    separator: str | None = None
    classes: Spec | None = None
    split: str | None = None
    white_level: float | None = None

    def __post_init__(self) -> None:
        if self.white_level is not None and not 0 < self.white_level < math.inf:
            raise UserError(f"the white level {self.white_level} must be a number above 0, such as 4095")

    def refuse(self, source: str, *names: str) -> None:
        """Raise UserError if one of the options `names` is set, which `source` cannot use."""
        for name in names:
            if getattr(self, name) is not None:
                flag = f"--{name}-column" if name in COLUMNS else f"--{name}"
                raise UserError(f"{flag} means nothing for {source}: leave it out")


class Split(NamedTuple):
    """The split of a source that is read: some of its rows, or all of a source without splits."""

    name: str = ""
    names: tuple[str, ...] = ()  # all splits of the source
    rows: np.ndarray | None = None
    note: str = ""  # for the report
    warning: str = ""


WHOLE = Split()


class Splits(NamedTuple):
    """The split of each row, folder or part of a source; none if it has no splits."""

    of_row: Sequence[str] = ()
    note: str = ""  # where they are named
    warning: str = ""  # if splits seem to be named and cannot be used
    none: str = ""  # why none is named

    @property
    def names(self) -> tuple[str, ...]:
        """All splits: train, val, test, then others by name."""
        return tuple(sorted(set(self.of_row), key=lambda each: ([*SPLITS, each].index(each), each)))

    def choose(self, options: Options, source: str) -> Split:
        """The requested split of `source`; the only one, else the training split, by default."""
        names = self.names
        if not names:
            return Split(note=self.none, warning=self.warning)
        wanted = canonical(options.split or (names[0] if len(names) == 1 else "train"))
        # Some data sets have only one of validation and test data.
        substitute = {"val": "test", "test": "val"}.get(wanted, wanted)
        chosen = next((each for each in (wanted, substitute) if each in names), None)
        if chosen is None:
            raise unknown(f"split of {source}", options.split or "train", names)
        rows = np.flatnonzero([each == chosen for each in self.of_row])
        note = f"{self.note}: {', '.join(names)}; this is {chosen}"
        return Split(chosen, names, rows, note, self.warning)


def choose_part(names: Sequence[str], options: Options, source: str) -> Split:
    """The requested split of a source that is read one split at a time."""
    return Splits(names, "splits").choose(options, source)._replace(rows=None)


def canonical(split: str) -> str:
    """One spelling for each split: train, val or test; any other name stays as it is."""
    return SYNONYMS.get(visible(split).strip().lower(), split)


def splits_by_name(names: Iterable[str]) -> dict[str, str]:
    """The split that each of these names stands for; names of no split are left out.

    `eval` is another word for val. Beside a validation split, and without a test split, it is the test split.
    """
    splits = {name: canonical(name) for name in names if canonical(name) in SPLITS}
    evaluation = [name for name in splits if name.strip().lower() in ("eval", "evaluation")]
    others = {split for name, split in splits.items() if name not in evaluation}
    if "val" in others and "test" not in others:
        splits |= dict.fromkeys(evaluation, "test")
    return splits
