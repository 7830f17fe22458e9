"""A table as text, Markdown and LaTeX: best in bold, second best underlined, partial numbers marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tracer.core.errors import unknown
from tracer.evaluation.tables.store import to_csv, to_json
from tracer.evaluation.tables.table import Cell, Mark, Table

PARTIAL = "†"
WARNING = f"{PARTIAL} measured on an incomplete copy of the data: not comparable with complete ones"
NONE = "–"

Style = Callable[[str, str, Mark, bool], str]  # value, uncertainty, mark, partial


def text(table: Table, intervals: bool = False) -> str:
    """Aligned columns for a terminal: **best**, _second best_."""
    grid = _grid(table, _plain, intervals)
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in grid]
    rule = "  ".join("─" * width for width in widths)
    return "\n".join([*_title(table), lines[0], rule, *lines[1:], *_notes(table)])


def markdown(table: Table, intervals: bool = False) -> str:
    """A pipe table: **best**, _second best_."""
    grid = [[cell.replace("|", "\\|") for cell in row] for row in _grid(table, _plain, intervals)]
    rule = [":--", *["--:"] * len(table.columns)]
    rows = [f"| {' | '.join(row)} |" for row in (grid[0], rule, *grid[1:])]
    notes = _notes(table)
    return "\n".join([*(f"**{line}**\n" for line in _title(table)), *rows, *(["", *notes] if notes else [])])


def latex(table: Table, intervals: bool = False) -> str:
    """A tabular for booktabs: the best in bold, the second best underlined, the spread as a subscript."""
    grid = _grid(table, _typeset, intervals)
    arrow = r"$\uparrow$" if table.better == "higher" else r"$\downarrow$"
    heads = " & ".join(["Method", *(f"{_escaped(column.head)}{arrow}" for column in table.columns)])
    rows = [" & ".join([_escaped(row[0]), *row[1:]]) for row in grid[1:]]
    body = [r"\toprule", rf"{heads} \\", r"\midrule", *(rf"{row} \\" for row in rows), r"\bottomrule"]
    comments = [f"% {line}" for line in (*_title(table), *_notes(table))]
    return "\n".join([*comments, rf"\begin{{tabular}}{{{_outline(table)}}}", *body, r"\end{tabular}"])


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
    """Several tables as one text: with intervals for a terminal, as one list in JSON, under one head in CSV."""
    if format == "json":
        return f"[{', '.join(map(to_json, tables))}]"
    if format == "csv":
        head, *_ = to_csv(tables[0]).splitlines(keepends=True)
        return head + "".join(to_csv(table).removeprefix(head) for table in tables)
    return "\n\n".join(
        text(table, intervals=True) if format == "text" else render(table, format) for table in tables
    )


def _grid(table: Table, style: Style, intervals: bool) -> list[list[str]]:
    """The head and every row as strings."""
    arrow = "↑" if table.better == "higher" else "↓"
    grid = [[f"{table.metric} {arrow}", *(column.head for column in table.columns)]]
    for index, (name, cells) in enumerate(table.rows):
        row = [name]
        for column in table.columns:
            found = cells.get(column.name)
            row.append(NONE if found is None else _styled(table, found, index, column.name, style, intervals))
        grid.append(row)
    return grid


def _styled(table: Table, cell: Cell, row: int, column: str, style: Style, intervals: bool) -> str:
    if intervals and cell.low is not None and cell.high is not None:
        spread = f"[{table.shown(cell.low)}, {table.shown(cell.high)}]"
    else:
        spread = "" if cell.std is None else f"±{table.shown(cell.std)}"
    return style(table.shown(cell.mean), spread, table.mark(row, column), cell.partial)


def _plain(value: str, spread: str, mark: Mark, partial: bool) -> str:
    marked = {"best": f"**{value}**", "second": f"_{value}_", "": value}[mark]
    return f"{marked}{PARTIAL if partial else ''}{' ' if spread else ''}{spread}"


def _typeset(value: str, spread: str, mark: Mark, partial: bool) -> str:
    below = f"$_{{{spread.replace('±', chr(92) + 'pm ')}}}$" if spread else ""
    number = f"{value}{'$^{' + chr(92) + 'dagger}$' if partial else ''}{below}"
    return {"best": rf"\textbf{{{number}}}", "second": rf"\underline{{{number}}}", "": number}[mark]


def _outline(table: Table) -> str:
    """Column rules as in the paper: a double one after ID, single ones between the other groups."""
    outline, before = "l", None
    for column in table.columns:
        if column.role != before:
            outline += "||" if before == "id" else "|"
        outline, before = f"{outline}c", column.role
    return outline


def _escaped(name: str) -> str:
    name = name.replace("\\", "\0")
    name = re.sub(r"([&%$#_{}])", r"\\\1", name)
    name = name.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
    return name.replace("\0", r"\textbackslash{}")


def _aligned(row: list[str], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]


def _title(table: Table) -> list[str]:
    return [table.title] if table.title else []


def _notes(table: Table) -> list[str]:
    return [*([WARNING] if table.partial else []), *table.notes]
