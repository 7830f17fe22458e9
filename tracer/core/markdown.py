"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, align_right: bool = True) -> str:
    """A pipe table without a final newline; `align_right` sets all columns but the first flush right.

    Pipes inside cells are escaped.
    """
    rule = ["---", *["--:" if align_right else "---"] * (len(columns) - 1)]
    lines = ([cell.replace("|", "\\|") for cell in row] for row in (columns, rule, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
