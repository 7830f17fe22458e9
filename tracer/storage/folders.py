"""Folders that are named and do not exist."""

from __future__ import annotations

from pathlib import Path

from tracer.core.errors import UserError, unknown


def no_such_folder(kind: str, path: Path) -> UserError:
    """The error for a path that leads nowhere; it names folders beside it."""
    beside = []
    if path.parent.is_dir():
        beside = [str(each) for each in path.parent.iterdir() if each.is_dir() and each.name[:1] != "."]
    return unknown(kind, path, beside) if beside else UserError(f"there is no {kind} at {path}")
