"""A model on a suite: predictions kept, then rows of numbers with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tracer.evaluate import Predictions, Scorer
from tracer.metrics import METRICS, bootstrap
from tracer.suites import Opened


class Row(NamedTuple):
    """One measure of one test set."""

    shift: str
    role: str
    metric: str
    value: float
    low: float
    high: float
    n: int
    partial: bool
    rule: str


def assess(
    scorer: Scorer, shifts: Iterable[Opened], keep: Path | None = None
) -> Iterator[tuple[Opened, list[Row]]]:
    """Score one test set after the other; with `keep`, their predictions are written there."""
    for opened in shifts:
        found = scorer.predict_shift(opened)
        if keep is not None:
            found.write(keep / f"{_file_name(opened.shift.name)}.safetensors")
        yield opened, rows(opened, found)


def rows(opened: Opened, found: Predictions) -> list[Row]:
    """Every metric of these predictions, each with a 95 % bootstrap interval where its order does not matter."""
    shift, _, partial = opened
    made = []
    for name, metric in METRICS.items():
        if metric.ordered:
            value = low = high = metric(found.logits, found.label)
        else:
            low, value, high = bootstrap(metric, found.logits, found.label)
        made.append(
            Row(shift.name, shift.role, name, value, low, high, len(found.label), partial, shift.rule)
        )
    return made


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
