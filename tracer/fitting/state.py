"""The files of a search: JSON objects that are written whole and carry a checksum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracer.storage.atomic import write_json
from tracer.storage.checksum import add_checksum, verify_checksum


def write_state(path: Path, value: dict[str, Any]) -> None:
    """Replace the content of a file atomically."""
    write_json(path, add_checksum(value))


def read_state(path: Path) -> dict[str, Any]:
    """What `write_state` wrote; empty if there is no such file or it is damaged, so that its content is made again."""
    try:
        return verify_checksum(path.read_text(encoding="utf-8"), required=True)
    except (FileNotFoundError, ValueError):
        return {}
