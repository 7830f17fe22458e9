"""The column of a table, an archive or shards that says which split each row belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.formats.columns import Columns, split_column
from tracer.data.formats.values import text
from tracer.data.options import SYNONYMS, Options, canonical, sort_splits, splits_by_name

SPLITS = frozenset(SYNONYMS.values())
YES_OR_NO = frozenset(("0", "1", "true", "false", "yes", "no", "t", "f", "y", "n", ""))
MOST_NAMES = 10  # of splits in a column
ADVICE = "write train, val or test, or rename the column"


class RowSplits(NamedTuple):
    """The split of each row; none if there is no such column."""

    of_row: list[str]
    note: str = ""  # for the report
    warning: str = ""  # if the column is there and cannot be used

    @property
    def names(self) -> tuple[str, ...]:
        """All splits, in their usual order."""
        return sort_splits(set(self.of_row))

    def choose(self, options: Options, source: str) -> str:
        """The requested split; empty if there are none."""
        return options.choose(self.names, source) if self.of_row else ""

    def take(self, examples: Examples, options: Options, source: str) -> Examples:
        """The examples, one for each row, of the requested split; all if there are no splits."""
        split = self.choose(options, source)
        return examples.take(np.flatnonzero([each == split for each in self.of_row])) if split else examples


def row_splits(table: Mapping[str, Sequence[Any]], columns: Columns, source: str) -> RowSplits:
    """The split of each row, by a column called split, set, subset, partition or fold, or one that names splits.

    Raises UserError where rows could be trained on and tested at once: if some rows name a split and others do not,
    if two columns name different splits, or if a column such as is_test says yes or no, or Usage says Training and
    PrivateTest. A column called split in which no row names one is ignored, with a warning unless it holds folds or
    nothing; so is a column in which some rows say train and others nothing that is known, with a warning.
    """
    free = {
        name: table[name] for name in table if name not in (columns.image, columns.caption, columns.label)
    }
    called = split_column(list(free))
    found: dict[str, RowSplits] = {}
    for name, values in free.items():
        if name == called or _names_splits(values):
            found[name] = _read(name, values, source)
        elif _alludes([name]) and _is_yes_or_no(values):
            raise UserError(
                f"{source}: the column {name} seems to say which rows are for a test: write a column split with "
                "train, val or test, or rename it"
            )
        elif _seems_to_name_splits(values):
            raise UserError(
                f"{source}: the column {name} seems to name splits, such as {_cell(values[0])!r}: write a column split "
                "with train, val or test, or leave it out"
            )
        elif _says_train(values):
            other = next(cell for cell in map(_cell, values) if canonical(cell) != "train")
            note = f"column {name}: no split, some rows say train and others {other!r}"
            found[name] = RowSplits([], note, f"{source}: {note}; all rows are used")
    usable = {name: each for name, each in found.items() if each.of_row}
    if not usable:
        return next(iter(found.values()), RowSplits([]))
    first, *others = usable
    for other in others:
        if usable[other].of_row != usable[first].of_row:
            raise UserError(f"{source}: the columns {first} and {other} name different splits: rename one")
    return usable[first]


def _names_splits(values: Sequence[Any]) -> bool:
    """Whether a column divides the rows, whatever it is called: into train and others, or into a split and blanks."""
    cells = {canonical(value) for value in values if isinstance(value, str)}
    if "train" in cells and not cells.isdisjoint(SPLITS - {"train"}):
        return True
    # A column with blanks that says the same of all other rows, such as "test", means these rows only.
    return bool(cells - {""}) and cells - {""} <= SPLITS and any(_cell(value) == "" for value in values)


def _seems_to_name_splits(values: Sequence[Any]) -> bool:
    """Whether every row says something with the name of a split in it, and not all the same: Training, PublicTest."""
    cells = {_cell(value) for value in values}
    if not 1 < len(cells) <= MOST_NAMES:
        return False
    alluded = [_alluded([cell]) for cell in cells]
    return all(alluded) and len(set().union(*alluded)) > 1


def _says_train(values: Sequence[Any]) -> bool:
    """Whether some rows say train and no more than a few other words stand in the rest."""
    cells = {canonical(_cell(value)) for value in values}
    return "train" in cells and 1 < len(cells) <= MOST_NAMES


def _is_yes_or_no(values: Sequence[Any]) -> bool:
    cells = {_cell(value).lower() for value in values}
    return len(cells) > 1 and cells <= YES_OR_NO


def _read(name: str, column: Sequence[Any], source: str) -> RowSplits:
    cells = [_cell(value) for value in column]
    known = splits_by_name(set(cells))
    values = [known.get(cell, cell) for cell in cells]
    wrong = [i for i, cell in enumerate(cells) if cell not in known]
    if not wrong:
        listed = ", ".join(sort_splits(set(values)))
        return RowSplits(values, f"split column: {name}, with {listed}")
    shown = f"the first says {cells[wrong[0]]!r}" if cells[wrong[0]] else "the first is empty"
    if len(wrong) < len(values):
        numbers = ", ".join(str(i + 1) for i in wrong[:5]) + (", …" if len(wrong) > 5 else "")
        problem = f"{len(wrong)} of {len(values)} rows have no split in the column {name} (row {numbers})"
        raise UserError(f"{source}: {problem}; {shown}: {ADVICE}")
    if _alludes(cells):
        raise UserError(
            f"{source}: the column {name} holds other names than train, val and test; {shown}: {ADVICE}"
        )
    note = f"column {name}: no split, its values are not train, val or test, such as {cells[0]!r}"
    folds = "fold" in name.lower() and all(cell.lstrip("-").isdecimal() for cell in cells if cell)
    return RowSplits([], note, "" if folds or not any(cells) else f"{source}: {note}; all rows are used")


def _alludes(texts: Iterable[str]) -> bool:
    """Whether a text has the name of a split as one of its words, as in "test set", "train_1" or "isTrain"."""
    return bool(_alluded(texts))


def _alluded(texts: Iterable[str]) -> set[str]:
    """The splits whose names are words of a text."""
    words = {
        word for text in set(texts) for word in re.findall(r"[^\W\d_A-Z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*", text)
    }
    return {SYNONYMS[word.lower()] for word in words if word.lower() in SYNONYMS}


def _cell(value: object) -> str:
    try:
        return text(value)
    except UserError:
        return f"{value!r:.60}"
