"""Folders that are named and do not exist."""

from __future__ import annotations

from pathlib import Path

from tracer.core.errors import UserError, unknown


def no_such_folder(kind: str, path: Path) -> UserError:
    """The error for a path that leads nowhere; it names folders beside it."""
    message, beside = f"there is no {kind} at {path}", []
    if path.parent.is_dir():
        beside = [each.name for each in path.parent.iterdir() if each.is_dir() and each.name[:1] != "."]
    if beside:
        message += f"; in {path.parent}: {str(unknown(kind, path.name, beside)).partition(': ')[2]}"
    return UserError(message)
