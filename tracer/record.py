"""What happened, as lines of JSON: the truth from which every curve and table is drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracer.atomic import write_text


class Recorder:
    """An append-only log; a line is `{"step": …, "kind": …, …values}`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def log(self, step: int, kind: str, **values: Any) -> None:
        """Add a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, "kind": kind, **values}))

    def rewind(self, step: int) -> None:
        """Forget what came after `step`, so that a resumed run does not tell it twice."""
        if self.path.exists():
            kept = (line for line in read(self.path) if line["step"] <= step)
            write_text(self.path, "".join(_line(entry) for entry in kept))


class Onlooker(Recorder):
    """For processes beside the one that writes."""

    def log(self, step: int, kind: str, **values: Any) -> None:
        del step, kind, values

    def rewind(self, step: int) -> None:
        del step


def read(path: Path, kind: str | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a log; a last line that was cut short by a crash is passed over."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and "step" in entry and kind in (None, entry.get("kind")):
                yield entry


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"
