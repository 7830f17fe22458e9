"""Folders that are named and do not exist, or hold what is no file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tracer.core.errors import UserError, suggestion, unknown

MOST = 5  # folders that an error names


def no_such_folder(kind: str, path: Path, files: Sequence[str]) -> UserError:
    """The error for a path that leads to no `kind`, a folder with one of these files; it names those beside it."""
    message = f"there is no {kind} at {path}"
    if not path.parent.is_dir() and (beside := _folders(path.parent.parent)):
        message += f": {unknown('folder', path.parent, beside)}"
    elif beside := _folders_with(path.parent, files):
        message += f"; in {path.parent}: {suggestion(path.name, beside)}"
    return UserError(message)


def folders_inside(path: Path, files: Sequence[str]) -> str:
    """The end of an error for a folder that is not what is meant: those in it with one of these files; else empty."""
    inside = [str(path / name) for name in sorted(_folders_with(path, files))]
    more = f" and {len(inside) - MOST} more" if len(inside) > MOST else ""
    return f"; give one of those in it: {', '.join(inside[:MOST])}{more}" if inside else ""


def _folders_with(path: Path, files: Sequence[str]) -> list[str]:
    return [name for name in _folders(path) if any((path / name / file).is_file() for file in files)]


def _folders(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    return [each.name for each in path.iterdir() if each.is_dir() and each.name[:1] != "."]


def require_utf8(path: Path) -> None:
    """Raise UserError for a path that is no UTF-8: safetensors writes files there, and does not read them again."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(
            f"{path} is not UTF-8, and weights could not be read there: choose another name"
        ) from None


def require_files(folder: Path) -> None:
    """Raise UserError if a folder holds pipes, devices or links to them: they would be read without an end."""
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            if path.exists() and not path.is_file():
                raise UserError(f"{path} is no file")
