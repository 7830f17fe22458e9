"""The log of a run, in JSON lines. All curves and tables are made from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracer.core.validation import fits
from tracer.storage.atomic import write_text


class Recorder:
    """An append-only log whose lines are `{"step": …, "kind": …, …values}`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def log(self, step: int, kind: str, **values: Any) -> None:
        """Append a line."""
        with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_line({"step": step, "kind": kind, **values}))

    def rewind(self, step: int) -> int:
        """Drop the lines after `step`, so that a resumed run does not log a step twice.

        Unreadable lines are dropped too. Returns their number, without the last line, which a crash may cut.
        """
        if not self.path.exists():
            return 0
        entries = list(entries_of(self.path))
        remaining = [entry for entry in entries if entry is not None and entry["step"] <= step]
        write_text(self.path, "".join(map(_line, remaining)))
        return sum(entry is None for entry in entries[:-1])


class NullRecorder(Recorder):
    """Writes nothing: for every process but the first."""

    def log(self, step: int, kind: str, **values: Any) -> None:
        del step, kind, values

    def rewind(self, step: int) -> int:
        del step
        return 0


def read(path: Path, kind: str | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a log, of one kind if given. Unreadable lines, such as one cut by a crash, are skipped."""
    return (entry for entry in entries_of(path) if entry is not None and kind in (None, entry.get("kind")))


def entries_of(path: Path) -> Iterator[dict[str, Any] | None]:
    """Each line of a log; None for one that is not readable."""
    with path.open("rb") as file:
        yield from map(_entry, file)


def _entry(line: bytes) -> dict[str, Any] | None:
    """The logged values of a line, or None if it is not a valid line."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and fits(entry.get("step"), int) else None


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"
