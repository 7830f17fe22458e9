"""Atomic writes: a temporary path in the same folder, fsync, rename. A crash leaves no partial content under `path`.

Every file has the mode that the umask gives a new one, whoever wrote it: safetensors makes its files private.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Any

from tracer.core.errors import UserError

MOST_BYTES = 200  # of a name in that of a temporary file; most file systems take 255


def write_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Call `fill` with a temporary path to write to, then rename the file to `path`."""
    temporary = _beside(path, "tmp")
    with _Writing(path):
        try:
            fill(temporary)
            temporary.chmod(_new_mode(temporary))
            _sync(temporary)
            temporary.replace(path)
        finally:
            # In a read-only folder the error of the write counts, not that of the clean-up.
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    _sync(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the content of `path` atomically."""
    write_file(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Replace the content of `path` atomically, encoded as UTF-8.

    What is not UTF-8 in a file name becomes \\udcff, which JSON reads as the same name again.
    """
    write_bytes(path, content.encode(errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Replace the content of `path` atomically by indented JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_folder(path: Path, fill: Callable[[Path], None], *, replace: bool = True) -> None:
    """Call `fill` with a temporary folder to write into, then rename it to `path`, or to where a link there leads.

    A folder of that name is replaced. Without `replace` only an empty one is: UserError if it has files, even if
    another process wrote them a moment ago.
    """
    if path.is_symlink():  # else the link itself would be moved away
        path = path.resolve()
    temporary, backup = _beside(path, "tmp"), _beside(path, "old")
    for leftover in (temporary, backup):
        shutil.rmtree(leftover, ignore_errors=True)
    with _Writing(path):
        temporary.mkdir()
        try:
            fill(temporary)
            mode = _new_mode(temporary / "new")
            for entry in (*temporary.rglob("*"), temporary):
                if entry.is_file() and not entry.is_symlink():
                    entry.chmod(mode)
                _sync(entry)
            if replace and path.exists():
                # Renamed, not deleted in place: a crash here must not leave half of the old folder.
                path.replace(backup)
            try:
                temporary.replace(path)
            except OSError as error:
                # There may be no backup, or another process has written the folder meanwhile.
                with suppress(OSError):
                    backup.replace(path)
                if not replace and error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise UserError(f"{path} is not empty: choose another folder") from None
                raise
            shutil.rmtree(backup, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    _sync(path.parent)


def write_link(path: Path, target: Path) -> None:
    """Replace the symbolic link `path` atomically by one to `target`; there is always one."""
    temporary = _beside(path, "tmp")
    with _Writing(path):
        try:
            temporary.symlink_to(target)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    """A hidden name in the same folder, of this process, that a file system takes if it takes that of `path`."""
    return path.with_name(f".{os.fsdecode(os.fsencode(path.name)[:MOST_BYTES])}.{os.getpid()}.{suffix}")


class _Writing:
    """A context in which the folder of `path` is there; folders that are new and still empty go again.

    Its errors of the system are an OSError that names `path`, or a file in it: writing to a full disk names none, and
    libraries in Rust (safetensors, tokenizers) have the number in a text only.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.new = path, [folder for folder in path.parents if not folder.exists()]

    def __enter__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with suppress(OSError):  # they are not empty, or another process was faster
            for folder in self.new:
                folder.rmdir()
        if isinstance(error, OSError):
            if error.errno is not None:  # else the name would stand in place of the message
                hidden = str(error.filename or "").endswith((f".{os.getpid()}.tmp", f".{os.getpid()}.old"))
                error.filename = str(self.path) if hidden else error.filename or str(self.path)
        elif isinstance(error, Exception) and (number := re.search(r"\(os error (\d+)\)", str(error))):
            code = int(number[1])
            raise OSError(code, os.strerror(code), str(self.path)) from error


def _new_mode(path: Path) -> int:
    """The mode of a new file beside `path`. Asking for the umask would change it for all threads for a moment."""
    probe = path.with_name(f".mode{path.name}")  # ends as a temporary file does, if it cannot be removed
    try:
        probe.touch()
        return S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Flush a file to the disk, or the entries of a folder, so that a rename survives a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        if path.is_dir():  # which some systems cannot open
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
