"""Tables of results in the paper's layout, as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from tracer.evaluation.tables.render import FORMATS, document
from tracer.evaluation.tables.table import Cell, Column, Table, averaged, tabulated

__all__ = ["FORMATS", "Cell", "Column", "Table", "averaged", "document", "tabulated"]
