"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, align_right: bool = True) -> str:
    """A pipe table without a final newline; `align_right` sets all columns but the first flush right.

    Pipes inside cells are escaped, and line breaks are spaces.
    """
    rule = ["---", *["--:" if align_right else "---"] * (len(columns) - 1)]
    lines = ([_cell(cell) for cell in row] for row in (columns, rule, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    r"""The text as one cell: a backslash before a pipe is doubled, because \\| would end the cell."""
    escaped = re.sub(r"(\\*)\|", r"\1\1\\|", text)
    return " ".join(escaped.splitlines())
