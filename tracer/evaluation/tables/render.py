"""A table as text, Markdown and LaTeX; the latter two mark the best and second best values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tracer.core.errors import unknown
from tracer.core.markdown import markdown_table
from tracer.evaluation.tables.store import to_csv, to_json
from tracer.evaluation.tables.table import Cell, Mark, Table

PARTIAL = "†"
WARNING = f"{PARTIAL} measured on an incomplete copy of the data: not comparable with complete ones"
MISSING = "–"

Style = Callable[[str, str, Mark, bool], str]  # value, uncertainty, mark, partial


def text(table: Table, intervals: bool = False) -> str:
    """Aligned columns for a terminal."""
    return "\n".join([*_title(table), *_columns(_grid(table, _plain, intervals)), *_notes(table)])


def summary(tables: Sequence[Table]) -> str:
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
    return "\n".join([*_columns(grid), *(note for table in tables for note in _notes(table))])


def _columns(grid: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a grid with aligned columns, and a rule under the first one."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in grid]
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]


def markdown(table: Table, intervals: bool = False) -> str:
    """A pipe table: **best**, _second best_."""
    head, *rows = _grid(table, _marked, intervals)
    title, notes = [f"**{line}**\n" for line in _title(table)], _notes(table)
    return "\n".join([*title, markdown_table(head, rows), *(["", *notes] if notes else [])])


def latex(table: Table, intervals: bool = False) -> str:
    """A tabular for booktabs: the best in bold, the second best underlined, the uncertainty as a subscript."""
    grid = _grid(table, _typeset, intervals)
    arrow = r"$\uparrow$" if table.better == "higher" else r"$\downarrow$"
    heads = " & ".join(["Method", *(f"{_escaped(column.head)}{arrow}" for column in table.columns)])
    rows = [" & ".join([_escaped(row[0]), *row[1:]]) for row in grid[1:]]
    body = [r"\toprule", rf"{heads} \\", r"\midrule", *(rf"{row} \\" for row in rows), r"\bottomrule"]
    comments = [f"% {line}" for line in (*_title(table), *_notes(table))]
    return "\n".join([*comments, rf"\begin{{tabular}}{{{_column_spec(table)}}}", *body, r"\end{tabular}"])


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
    "csv": to_csv,
    "json": to_json,
}


def render(table: Table, format: str = "text") -> str:
    """The table in one of the five formats."""
    if format not in FORMATS:
        raise unknown("table format", format, FORMATS)
    return FORMATS[format](table)


def document(tables: Sequence[Table], format: str = "text") -> str:
    """Several tables as one text; text is one table with intervals, JSON is one list, CSV has one header."""
    if format == "json":
        return f"[{', '.join(map(to_json, tables))}]"
    if format == "csv":
        head, *_ = to_csv(tables[0]).splitlines(keepends=True)
        return head + "".join(to_csv(table).removeprefix(head) for table in tables)
    if format == "text":
        return summary(tables)
    return "\n\n".join(render(table, format) for table in tables)


def _grid(table: Table, style: Style, intervals: bool) -> list[list[str]]:
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


def _title(table: Table) -> list[str]:
    return [table.title] if table.title else []


def _notes(table: Table) -> list[str]:
    return [*([WARNING] if table.partial else []), *table.notes]
