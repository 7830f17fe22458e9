"""The result file: sections of ratios, each with its date and machine, as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tracer.core.errors import UserError
from tracer.storage.atomic import write_text


class Row(NamedTuple):
    """One ratio, ours over the reference, and its target range if there is one."""

    what: str
    ratio: float
    ours: str
    reference: str
    target: tuple[float, float] | None = None  # from … to
    spread: str = ""

    @property
    def met(self) -> bool:
        """Whether the ratio is in its target range, or has none."""
        return self.target is None or self.target[0] <= self.ratio <= self.target[1]

    @property
    def target_text(self) -> str:
        """The target as text; empty if there is none."""
        if self.target is None:
            return ""
        low, high = self.target
        return f"{low:.2f} … {high:.2f}" if low else f"≤ {high:.3g}"


@dataclass(frozen=True)
class Section:
    """The rows of one benchmark of one model."""

    rows: tuple[Row, ...]
    rounds: int
    clock: str  # wall time or CPU time
    machine: str
    day: str


Sections = dict[str, Section]  # by title


def section(rows: list[Row], rounds: int, clock: str = "time on the wall") -> Section:
    """Rows that were measured on this machine today."""
    return Section(tuple(rows), rounds, clock, machine(), datetime.now(UTC).date().isoformat())


def machine() -> str:
    """The processor and the libraries, without the name of the machine."""
    model = platform.processor() or platform.machine()
    file = Path("/proc/cpuinfo")
    if file.exists():
        lines = [line for line in file.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    return f"{model}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"


def read(path: Path) -> Sections:
    """The sections of a result file; none if it does not exist."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
        return {title: _section(parts) for title, parts in content.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{path} holds no benchmarks: give --results another name") from None


def write(path: Path, sections: Mapping[str, Section]) -> None:
    """Write the sections, with rows as objects."""
    content = {
        title: {**asdict(each), "rows": [row._asdict() for row in each.rows]}
        for title, each in sections.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _section(parts: dict[str, Any]) -> Section:
    rows = [Row(**(row | {"target": row["target"] and tuple(row["target"])})) for row in parts["rows"]]
    return Section(**(parts | {"rows": tuple(rows)}))
