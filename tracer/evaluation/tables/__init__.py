"""Tables of results in the paper's layout, as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from tracer.evaluation.tables.render import FORMATS, document, latex, markdown, render, text
from tracer.evaluation.tables.store import to_csv, to_json
from tracer.evaluation.tables.table import Cell, Column, Table, averaged, cell, tabulated

__all__ = [
    "FORMATS",
    "Cell",
    "Column",
    "Table",
    "averaged",
    "cell",
    "document",
    "latex",
    "markdown",
    "render",
    "tabulated",
    "text",
    "to_csv",
    "to_json",
]
