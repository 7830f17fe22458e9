"""Files that are either there whole or not there: write beside, flush to the disk, rename."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` write a file beside `path`, then put it in place in one indivisible move."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        fill(beside)
        sync_file(beside)
        beside.replace(path)
    finally:
        with suppress(OSError):  # where nothing may be written, nothing may be taken away
            beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one indivisible move."""
    write_file(path, lambda beside: beside.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Replace `path` by `content`, in UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by `value`, as JSON that people can read."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write into a folder beside `path`, then put the folder in place whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside, aside = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("tmp", "old"))
    for scrap in (beside, aside):
        shutil.rmtree(scrap, ignore_errors=True)
    beside.mkdir()
    try:
        fill(beside)
        for file in beside.rglob("*"):
            sync_folder(file) if file.is_dir() else sync_file(file)
        sync_folder(beside)
        if path.exists():  # moved, not emptied in place: whoever dies here leaves no half of a folder
            path.replace(aside)
        beside.replace(path)
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Wait until the bytes of a file are on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make a rename survive a power cut, where the system can open folders."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
