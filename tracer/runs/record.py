"""What happened, as lines of JSON: the truth from which every curve and table is drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracer.storage.atomic import write_text


class Recorder:
    """An append-only log; a line is `{"step": …, "kind": …, …values}`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def log(self, step: int, kind: str, **values: Any) -> None:
        """Add a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, "kind": kind, **values}))

    def rewind(self, step: int) -> int:
        """Forget what came after `step`, so that a resumed run does not tell it twice.

        Returns how many lines were not readable and are gone; the last one, which a crash may cut, is not counted.
        """
        if not self.path.exists():
            return 0
        entries = [_entry(line) for line in self.path.read_bytes().splitlines()]
        kept = [entry for entry in entries if entry is not None and entry["step"] <= step]
        write_text(self.path, "".join(map(_line, kept)))
        return sum(entry is None for entry in entries[:-1])


class Onlooker(Recorder):
    """For processes beside the one that writes."""

    def log(self, step: int, kind: str, **values: Any) -> None:
        del step, kind, values

    def rewind(self, step: int) -> int:
        del step
        return 0


def read(path: Path, kind: str | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a log; a line that was cut short by a crash is passed over."""
    with path.open("rb") as file:
        for line in file:
            entry = _entry(line)
            if entry is not None and kind in (None, entry.get("kind")):
                yield entry


def _entry(line: bytes) -> dict[str, Any] | None:
    """A line as it was logged; None if it is not one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(entry, dict) and isinstance(entry.get("step"), int) and entry["step"] is not True
    return entry if whole and entry["step"] is not False else None


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"
