"""Folders that are named and do not exist, or hold what is no file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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


def paths_inside(folder: Path, apart: str) -> Iterator[Path]:
    """All files, folders and links in a folder; of its folder `apart` only that itself, not what lies in it."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place) / name for name in sorted((*folders, *files)))
        if Path(place) == folder and apart in folders:
            folders.remove(apart)


def require_files(folder: Path, apart: str) -> None:
    """Raise UserError if a folder holds pipes, devices or links to them: they would be read without an end.

    Nothing is read in its folder `apart`.
    """
    for path in paths_inside(folder, apart):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is no file")


def remove_links(folder: Path) -> None:
    """Remove all links in a folder, or the folder if it is one: what is written there stays there."""
    for path in (folder, *paths_inside(folder, "")):
        if path.is_symlink():
            path.unlink()
