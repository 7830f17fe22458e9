"""Tables as text, Markdown, LaTeX, CSV and JSON; Markdown and LaTeX mark the best and second best values."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from io import StringIO

from tracer.core.errors import unknown
from tracer.core.markdown import markdown_table
from tracer.evaluation.tables.table import Cell, Mark, Table

PARTIAL = "†"
WARNING = f"{PARTIAL} measured on an incomplete copy of the data: not comparable with complete ones"
MISSING = "–"
CSV_FIELDS = (
    *("model", "column", "head", "role", "metric", "better", "percent"),
    *("seed", "value", "low", "high", "partial", "n"),
)

Style = Callable[[str, str, Mark, bool], str]  # value, uncertainty, mark, partial


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
        (metric, *heads), *rows = _grid(table, _plain, intervals=True)
        values = {name: cells for name, *cells in rows}
        for index, column in enumerate(table.columns):
            cells = [each[column.name] for _, each in table.rows if column.name in each]
            if cells:
                line = [values[name][index] if name in values else MISSING for name in models]
                counts = dict.fromkeys(str(cell.n) for cell in cells if cell.n is not None)
                label = ", ".join(filter(None, (table.title, heads[index], metric)))
                grid.append([label, *line, " or ".join(counts)])
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    head, *lines = ["  ".join(_aligned(row, widths)).rstrip() for row in grid]
    notes = dict.fromkeys(note for table in tables for note in _notes(table))
    return "\n".join([head, "  ".join("─" * width for width in widths), *lines, *notes])


def markdown(tables: Sequence[Table]) -> str:
    """Pipe tables: **best**, _second best_."""
    parts = []
    for table in tables:
        head, *rows = _grid(table, _marked)
        parts += [f"**{table.title}**"] if table.title else []
        parts += [markdown_table(head, rows), "\n".join(_notes(table))]
    return "\n\n".join(filter(None, parts))


def latex(tables: Sequence[Table]) -> str:
    """Tabulars for booktabs: the best in bold, the second best underlined, the uncertainty as a subscript."""
    return "\n\n".join(map(_tabular, tables))


def to_csv(tables: Sequence[Table]) -> str:
    """One line for each model, column and seed, in full precision, without titles and notes."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for table in tables:
        for name, cells in table.rows:
            for column in table.columns:
                fields = (name, *column, table.metric, table.better, int(table.percent))
                writer.writerows((*fields, *number) for number in _numbers(cells.get(column.name)))
    return out.getvalue()


def to_json(tables: Sequence[Table]) -> str:
    """A list of the whole tables, titles and notes included."""
    contents = (asdict(table) | {"columns": [c._asdict() for c in table.columns]} for table in tables)
    return f"[{', '.join(json.dumps(each, indent=1, ensure_ascii=False) for each in contents)}]"


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
    "csv": to_csv,
    "json": to_json,
}


def _tabular(table: Table) -> str:
    grid = _grid(table, _typeset)
    arrow = r"$\uparrow$" if table.better == "higher" else r"$\downarrow$"
    heads = " & ".join(["Method", *(f"{_escaped(column.head)}{arrow}" for column in table.columns)])
    rows = [" & ".join([_escaped(row[0]), *row[1:]]) for row in grid[1:]]
    body = [r"\toprule", rf"{heads} \\", r"\midrule", *(rf"{row} \\" for row in rows), r"\bottomrule"]
    comments = [f"% {line}" for line in (table.title, *_notes(table)) if line]
    return "\n".join([*comments, rf"\begin{{tabular}}{{{_column_spec(table)}}}", *body, r"\end{tabular}"])


def _numbers(cell: Cell | None) -> list[tuple[object, ...]]:
    """Seed, value, bounds, completeness and count of each number in a cell; an empty line for an empty cell."""
    if cell is None:
        return [("", "", "", "", "", "")]
    low, high, n = ("" if each is None else repr(each) for each in (cell.low, cell.high, cell.n))
    return [(seed, repr(value), low, high, int(cell.partial), n) for seed, value in enumerate(cell.values)]


def _grid(table: Table, style: Style, *, intervals: bool = False) -> list[list[str]]:
    """The header and every row as strings."""
    arrow = "↑" if table.better == "higher" else "↓"
    grid = [[f"{table.metric} {arrow}", *(column.head for column in table.columns)]]
    for index, (name, cells) in enumerate(table.rows):
        row = [name]
        for column in table.columns:
            cell = cells.get(column.name)
            row.append(
                MISSING if cell is None else _styled(table, cell, index, column.name, style, intervals)
            )
        grid.append(row)
    return grid


def _styled(table: Table, cell: Cell, row: int, column: str, style: Style, intervals: bool) -> str:
    if intervals and cell.low is not None and cell.high is not None:
        uncertainty = f"[{table.shown(cell.low)}, {table.shown(cell.high)}]"
    else:
        uncertainty = "" if cell.std is None else f"±{table.shown(cell.std)}"
    return style(table.shown(cell.mean), uncertainty, table.mark(row, column), cell.partial)


def _plain(value: str, uncertainty: str, mark: Mark, partial: bool) -> str:
    return f"{value}{PARTIAL if partial else ''}{' ' if uncertainty else ''}{uncertainty}"


def _marked(value: str, uncertainty: str, mark: Mark, partial: bool) -> str:
    return _plain(
        {"best": f"**{value}**", "second": f"_{value}_", "": value}[mark], uncertainty, mark, partial
    )


def _typeset(value: str, uncertainty: str, mark: Mark, partial: bool) -> str:
    subscript = f"$_{{{uncertainty.replace('±', chr(92) + 'pm ')}}}$" if uncertainty else ""
    number = f"{value}{'$^{' + chr(92) + 'dagger}$' if partial else ''}{subscript}"
    return {"best": rf"\textbf{{{number}}}", "second": rf"\underline{{{number}}}", "": number}[mark]


def _column_spec(table: Table) -> str:
    """The columns of the tabular, with rules as in the paper: a double one after ID, single ones between groups."""
    spec, before = "l", None
    for column in table.columns:
        if column.role != before:
            spec += "||" if before == "id" else "|"
        spec, before = f"{spec}c", column.role
    return spec


def _escaped(name: str) -> str:
    name = name.replace("\\", "\0")
    name = re.sub(r"([&%$#_{}])", r"\\\1", name)
    name = name.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
    return name.replace("\0", r"\textbackslash{}")


def _aligned(row: Sequence[str], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]


def _notes(table: Table) -> list[str]:
    return [*([WARNING] if table.partial else []), *table.notes]
