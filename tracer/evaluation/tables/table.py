"""A table of results: a row per model, a column per test set, and averages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tracer.core.metrics import Interval, Metric, independent_mean
from tracer.evaluation.suites.shift import Average, Role, Suite

Mark = Literal["best", "second", ""]
ORDER = ("id", "ood", "average", "retain")  # of columns, as in the paper; retained data come last


@dataclass(frozen=True)
class Cell:
    """A value with its interval, whether the data were incomplete, and the number of images if known."""

    interval: Interval
    partial: bool = False
    n: int | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.interval.value):
            raise ValueError(f"a cell needs a finite value, not {self.interval.value}")


class Column(NamedTuple):
    """A test set or an average, and the text of its header."""

    name: str
    head: str
    role: Role | Literal["average"]


@dataclass(frozen=True)
class Table:
    """One metric of several models on several test sets."""

    metric: str
    better: Literal["higher", "lower"]
    percent: bool
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, Mapping[str, Cell]], ...]  # name of a model, and its cells by name of the column
    title: str = ""
    notes: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        return any(cell.partial for _, cells in self.rows for cell in cells.values())

    def shown(self, value: float) -> str:
        """A value as it is printed: 82.76 for a share, 0.0451 for others."""
        return f"{100 * value:.2f}" if self.percent else f"{value:.4f}"

    def mark(self, row: int, column: str) -> Mark:
        """Best or second best of its column, as printed; partial values are not ranked."""
        cell = self.rows[row][1].get(column)
        complete = [cells[column] for _, cells in self.rows if column in cells and not cells[column].partial]
        if cell is None or cell.partial or len(complete) < 2:
            return ""
        values = {float(self.shown(each.interval.value)) for each in complete}
        rank = sorted(values, reverse=self.better == "higher").index(float(self.shown(cell.interval.value)))
        return "best" if rank == 0 else "second" if rank == 1 else ""


def tabulated(metric: Metric[...], suite: Suite, results: Mapping[str, Mapping[str, Cell]]) -> Table:
    """The table of one metric in the paper's order: ID, shifts, their averages, retained data."""
    test_sets = [Column(shift.name, shift.head, shift.role) for shift in suite]
    averages = [
        Column(each.name, f"{each.name} avg ({len(each.members)})", "average") for each in suite.averages
    ]
    rows = []
    for name, cells in results.items():
        means = ((each.name, averaged(each, cells)) for each in suite.averages)
        rows.append((name, {**cells, **{key: mean for key, mean in means if mean is not None}}))
    columns = sorted([*test_sets, *averages], key=lambda column: ORDER.index(column.role))
    return Table(metric.name, metric.better, metric.percent, tuple(columns), tuple(rows))


def averaged(average: Average, cells: Mapping[str, Cell]) -> Cell | None:
    """The mean over the members that are there; partial if any is missing or partial."""
    members = [cells[name] for name in average.members if name in cells]
    if not members:
        return None
    partial = len(members) < len(average.members) or any(member.partial for member in members)
    return Cell(independent_mean([member.interval for member in members]), partial)
