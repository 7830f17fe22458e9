"""What was measured, as rows, and as a page that says on what machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch


class Row(NamedTuple):
    """One ratio: ours over the reference, with the target of the design where there is one."""

    what: str
    ratio: float
    ours: str
    reference: str
    target: str = ""
    spread: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, f"{self.ratio:.2f}", self.spread, self.target, self.ours, self.reference)


HEADER = ("what", "ratio", "rounds from … to", "target", "ours", "reference")


def machine() -> str:
    """The processor and the libraries, and nothing that names the machine."""
    model = platform.processor() or platform.machine()
    file = Path("/proc/cpuinfo")
    if file.exists():
        lines = [line for line in file.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    return f"{model}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}"


def page(sections: Mapping[str, Sequence[Row]], notes: Sequence[str] = ()) -> str:
    """docs/benchmarks.md."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. A ratio is the median over rounds of two times that were taken in turns, in both "
        "orders, in one run; below 1 ours is faster. The reference is written in `tracer/bench/plain.py` the way "
        "released recipes do it: 77 tokens, open_clip's loss, unfused AdamW, a loop for the teacher, `.item()` at "
        "every step. Weights are random: speed does not depend on them.",
        "",
        f"Machine: {machine()}.",
        "",
    ]
    lines += [f"- {note}" for note in notes] + ([""] if notes else [])
    for title, rows in sections.items():
        lines += [f"## {title}", "", f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
        lines += [f"| {' | '.join(row.cells)} |" for row in rows] + [""]
    return "\n".join(lines)
