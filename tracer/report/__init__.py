"""A report on runs: one self-contained HTML page, and every figure of it as a file."""

from __future__ import annotations

from tracer.report.page import Page, read_page, write_report

__all__ = ["Page", "read_page", "write_report"]
