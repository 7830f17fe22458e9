"""A table as CSV (one line per number) and as JSON; both can be read back."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from io import StringIO
from typing import Any

from tracer.core.errors import UserError
from tracer.evaluation.tables.table import Cell, Column, Table

FIELDS = (
    *("model", "column", "head", "role", "metric", "better", "percent"),
    *("seed", "value", "low", "high", "partial"),
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
    """Seed, value, bounds and completeness of each number in a cell; an empty line for an empty cell."""
    if cell is None:
        return [("", "", "", "", "")]
    bounds = ["" if bound is None else repr(bound) for bound in (cell.low, cell.high)]
    return [(seed, repr(value), *bounds, int(cell.partial)) for seed, value in enumerate(cell.values)]


def from_csv(text: str) -> Table:
    """The table that `to_csv` wrote."""
    lines = list(csv.DictReader(StringIO(text)))
    if not lines or set(lines[0]) != set(FIELDS):
        raise UserError(f"not a table of results: the columns {', '.join(FIELDS)} are needed, and one line")
    columns = dict.fromkeys(Column(line["column"], line["head"], line["role"]) for line in lines)  # pyright: ignore[reportArgumentType]
    rows: dict[str, dict[str, Cell]] = {}
    for line in lines:
        cells = rows.setdefault(line["model"], {})
        if not line["value"]:
            continue
        before = cells[line["column"]].values if line["column"] in cells else ()
        low, high = (float(line[bound]) if line[bound] else None for bound in ("low", "high"))
        cells[line["column"]] = Cell((*before, float(line["value"])), low, high, line["partial"] == "1")
    first = lines[0]
    return _table(first["metric"], first["better"], first["percent"] == "1", tuple(columns), rows)


def to_json(table: Table) -> str:
    """The whole table, title and notes included."""
    return json.dumps(
        asdict(table) | {"columns": [c._asdict() for c in table.columns]}, indent=1, ensure_ascii=False
    )


def from_json(text: str) -> Table:
    """The table that `to_json` wrote."""
    try:
        content = json.loads(text)
        columns = tuple(Column(**column) for column in content["columns"])
        rows = {
            name: {key: Cell(**{**cell, "values": tuple(cell["values"])}) for key, cell in cells.items()}
            for name, cells in content["rows"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"not a table of results: {error}") from error
    table = _table(content["metric"], content["better"], content["percent"], columns, rows)
    return Table(**{**vars(table), "title": content["title"], "notes": tuple(content["notes"])})


def _table(
    metric: str, better: Any, percent: bool, columns: tuple[Column, ...], rows: dict[str, dict[str, Cell]]
) -> Table:
    return Table(metric, better, percent, columns, tuple(rows.items()))
