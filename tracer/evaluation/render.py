"""Tables as text, Markdown, LaTeX, CSV and JSON; Markdown and LaTeX mark the best and second best values."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from tracer.core.errors import unknown
from tracer.core.markdown import markdown_table
from tracer.evaluation.tables import Cell, Mark, Table

PARTIAL = "†"
WARNING = f"{PARTIAL} measured on an incomplete copy of the data: not comparable with complete ones"
MISSING = "–"
CSV_FIELDS = (
    *("model", "column", "head", "role", "metric", "better", "percent"),
    *("seed", "value", "low", "high", "partial", "n"),
)
LATEX_ESCAPES = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)

Marks = dict[Mark, str]  # how a value with each mark is written
IN_MARKDOWN: Marks = {"best": "**{}**", "second": "_{}_", "": "{}"}
IN_LATEX: Marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}


def document(tables: Sequence[Table], format: str = "text") -> str:
    """Several tables as one text, in one of the five formats."""
    if format not in FORMATS:
        raise unknown("table format", format, FORMATS)
    return FORMATS[format](tables)


def text(tables: Sequence[Table]) -> str:
    """All tables as one for a terminal: a row per test set and metric, a column per model, and the number of images."""
    models = dict.fromkeys(name for table in tables for name, _ in table.rows)
    grid = [["", *models, "images"]]
    for table in tables:
        for column in table.columns:
            cells = {name: each[column.name] for name, each in table.rows if column.name in each}
            if cells:
                values = [_with_interval(table, cells[name]) if name in cells else MISSING for name in models]
                counts = dict.fromkeys(str(cell.n) for cell in cells.values() if cell.n is not None)
                label = ", ".join(filter(None, (table.title, column.head, _metric(table))))
                grid.append([label, *values, " or ".join(counts)])
    first, *others = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = []
    for label, *cells in grid:
        aligned = [cell.rjust(width) for cell, width in zip(cells, others, strict=True)]
        lines.append("  ".join([label.ljust(first), *aligned]).rstrip())
    lines.insert(1, "  ".join("─" * width for width in (first, *others)))
    notes = dict.fromkeys(note for table in tables for note in _notes(table))
    return "\n".join([*lines, *notes])


def markdown(tables: Sequence[Table]) -> str:
    """Pipe tables: **best**, _second best_."""
    parts = []
    for table in tables:
        heads = [_metric(table), *(column.head for column in table.columns)]
        parts += [f"**{table.title}**"] if table.title else []
        parts += [markdown_table(heads, _rows(table, IN_MARKDOWN, PARTIAL)), "\n".join(_notes(table))]
    return "\n\n".join(filter(None, parts))


def latex(tables: Sequence[Table]) -> str:
    """Tabulars for booktabs: the best in bold, the second best underlined."""
    return "\n\n".join(map(_tabular, tables))


def to_csv(tables: Sequence[Table]) -> str:
    """One line for each model and column, in full precision, without titles and notes."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for table in tables:
        for name, cells in table.rows:
            for column in table.columns:
                fields = (name, *column, table.metric, table.better, int(table.percent))
                cell = cells.get(column.name)
                values = [None] * 6
                if cell is not None:
                    value, low, high = _ends(cell)
                    values = [0, value, low, high, int(cell.partial), cell.n]
                writer.writerow((*fields, *values))
    return out.getvalue()


def to_json(tables: Sequence[Table]) -> str:
    """A list of the whole tables, titles and notes included."""
    contents = []
    for table in tables:
        rows = [[name, {column: _json(cell) for column, cell in cells.items()}] for name, cells in table.rows]
        columns = [column._asdict() for column in table.columns]
        contents.append({**vars(table), "columns": columns, "rows": rows})
    return f"[{', '.join(json.dumps(each, indent=1, ensure_ascii=False) for each in contents)}]"


def _json(cell: Cell) -> dict[str, Any]:
    value, low, high = _ends(cell)
    return {"values": [value], "low": low, "high": high, "partial": cell.partial, "n": cell.n}


def _ends(cell: Cell) -> tuple[float, float | None, float | None]:
    """The value, and the ends of its interval if they are known."""
    low, value, high = cell.interval
    return (value, low, high) if cell.interval.known else (value, None, None)


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
    "csv": to_csv,
    "json": to_json,
}


def _tabular(table: Table) -> str:
    """One tabular, with rules as in the paper: a double one after ID, single ones between groups."""
    spec, role = "l", None
    for column in table.columns:
        if column.role != role:
            spec += "||" if role == "id" else "|"
        spec, role = f"{spec}c", column.role
    arrow = r"$\uparrow$" if table.better == "higher" else r"$\downarrow$"
    heads = ["Method", *(f"{column.head.translate(LATEX_ESCAPES)}{arrow}" for column in table.columns)]
    rows = _rows(table, IN_LATEX, r"$^{\dagger}$")
    escaped = [[name.translate(LATEX_ESCAPES), *cells] for name, *cells in rows]
    head, *body = [rf"{' & '.join(row)} \\" for row in (heads, *escaped)]
    comments = [f"% {line}" for line in (table.title, *_notes(table)) if line]
    lines = [r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*comments, rf"\begin{{tabular}}{{{spec}}}", *lines, r"\end{tabular}"])


def _rows(table: Table, marks: Marks, partial: str) -> list[list[str]]:
    """Each row as strings, the name of the model first; `partial` follows values on incomplete data."""
    rows = []
    for index, (name, cells) in enumerate(table.rows):
        row = [name]
        for column in table.columns:
            cell = cells.get(column.name)
            value = MISSING if cell is None else table.shown(cell.interval.value)
            sign = partial if cell is not None and cell.partial else ""
            row.append(marks[table.mark(index, column.name)].format(f"{value}{sign}"))
        rows.append(row)
    return rows


def _with_interval(table: Table, cell: Cell) -> str:
    value = f"{table.shown(cell.interval.value)}{PARTIAL if cell.partial else ''}"
    low, _, high = cell.interval
    return f"{value} [{table.shown(low)}, {table.shown(high)}]" if cell.interval.known else value


def _metric(table: Table) -> str:
    return f"{table.metric} {'↑' if table.better == 'higher' else '↓'}"


def _notes(table: Table) -> list[str]:
    return [*([WARNING] if table.partial else []), *table.notes]
