"""A table as CSV (one line per number) and as JSON."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from io import StringIO

from tracer.evaluation.tables.table import Cell, Table

FIELDS = (
    *("model", "column", "head", "role", "metric", "better", "percent"),
    *("seed", "value", "low", "high", "partial", "n"),
)


def to_csv(table: Table) -> str:
    """One line for each model, column and seed, in full precision, without title and notes."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for name, cells in table.rows:
        for column in table.columns:
            fields = (name, *column, table.metric, table.better, int(table.percent))
            writer.writerows((*fields, *number) for number in _numbers(cells.get(column.name)))
    return out.getvalue()


def _numbers(cell: Cell | None) -> list[tuple[object, ...]]:
    """Seed, value, bounds, completeness and count of each number in a cell; an empty line for an empty cell."""
    if cell is None:
        return [("", "", "", "", "", "")]
    low, high, n = ("" if each is None else repr(each) for each in (cell.low, cell.high, cell.n))
    return [(seed, repr(value), low, high, int(cell.partial), n) for seed, value in enumerate(cell.values)]


def to_json(table: Table) -> str:
    """The whole table, title and notes included."""
    return json.dumps(
        asdict(table) | {"columns": [c._asdict() for c in table.columns]}, indent=1, ensure_ascii=False
    )
