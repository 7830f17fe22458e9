"""The column of a table, an archive or shards that says which split each row belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tracer.core.errors import UserError
from tracer.data.columns import Columns, split_column
from tracer.data.options import SYNONYMS, Options, canonical, sort_splits
from tracer.data.values import text


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
        """The split that is asked for; empty if there are none."""
        return options.choose(self.names, source) if self.of_row else ""


def row_splits(table: Mapping[str, Sequence[Any]], columns: Columns, source: str) -> RowSplits:
    """The split of each row by the column called split, set, subset, partition or fold.

    Raises UserError if some rows name a split and others do not: those would be trained on and tested at once. A
    column in which no row names a split is ignored, with a warning unless its values are numbers (folds) or blank.
    """
    free = [name for name in table if name not in (columns.image, columns.caption, columns.label)]
    name = split_column(free)
    if name is None:
        return RowSplits([])
    cells = [_cell(value) for value in table[name]]
    values = [canonical(cell) for cell in cells]
    wrong = [i for i, value in enumerate(values) if value not in SYNONYMS.values()]
    if not wrong:
        listed = ", ".join(sort_splits(set(values)))
        return RowSplits(values, f"split column: {name}, with {listed}")
    shown = f"the first says {cells[wrong[0]]!r}" if cells[wrong[0]] else "the first is empty"
    advice = "write train, val or test, or rename the column"
    if len(wrong) < len(values):
        numbers = ", ".join(str(i + 1) for i in wrong[:5]) + (", …" if len(wrong) > 5 else "")
        problem = f"{len(wrong)} of {len(values)} rows have no split in the column {name} (row {numbers})"
        raise UserError(f"{source}: {problem}; {shown}: {advice}")
    if _alludes(cells):
        raise UserError(
            f"{source}: the column {name} holds other names than train, val and test; {shown}: {advice}"
        )
    note = f"column {name}: no split, its values are not train, val or test, such as {cells[0]!r}"
    plain = all(not cell or cell.lstrip("-").isdecimal() for cell in cells)
    return RowSplits([], note, "" if plain else f"{source}: {note}; all rows are used")


def _alludes(cells: Iterable[str]) -> bool:
    """Whether a value has the name of a split as one of its words, as in "test set" or "train_1"."""
    words = {word for cell in set(cells) for word in re.split(r"[\W_\d]+", cell.lower())}
    return not words.isdisjoint(SYNONYMS)


def _cell(value: object) -> str:
    try:
        return text(value)
    except UserError:
        return f"{value!r:.60}"
