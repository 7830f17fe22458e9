"""A table of results: a row per model, a column per test set, and averages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tracer.core.metrics import Metric
from tracer.evaluation.suites.shift import Average, Role, Suite

Mark = Literal["best", "second", ""]
ORDER = ("id", "ood", "average", "retain")  # of columns, as in the paper; retained data come last


@dataclass(frozen=True)
class Cell:
    """A value per seed, an interval and the number of images if known, and whether the data were incomplete."""

    values: tuple[float, ...]
    low: float | None = None
    high: float | None = None
    partial: bool = False
    n: int | None = None

    def __post_init__(self) -> None:
        if not self.values or not all(map(math.isfinite, self.values)):
            raise ValueError(f"a cell needs finite values, not {self.values}")

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)


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
        values = {float(self.shown(each.mean)) for each in complete}
        rank = sorted(values, reverse=self.better == "higher").index(float(self.shown(cell.mean)))
        return "best" if rank == 0 else "second" if rank == 1 else ""


def tabulated(metric: Metric[...], suite: Suite, results: Mapping[str, Mapping[str, Cell]]) -> Table:
    """The table of one metric in the paper's order: ID, shifts, their averages, retained data."""
    test_sets = [Column(shift.name, shift.head, shift.role) for shift in suite]
    averages = [
        Column(each.name, f"{each.name} avg ({len(each.members)})", "average") for each in suite.averages
    ]
    rows = []
    for name, cells in results.items():
        means = {each.name: averaged(each, cells) for each in suite.averages}
        rows.append((name, {**cells, **{key: mean for key, mean in means.items() if mean is not None}}))
    columns = sorted([*test_sets, *averages], key=lambda column: ORDER.index(column.role))
    return Table(metric.name, metric.better, metric.percent, tuple(columns), tuple(rows))


def averaged(average: Average, cells: Mapping[str, Cell]) -> Cell | None:
    """The mean over the members that are there, seed by seed; partial if any is missing or partial.

    Test sets are independent, so the squares of the half-widths of their intervals add up.
    """
    members = [cells[name] for name in average.members if name in cells]
    if not members:
        return None
    seeds = zip(*(member.values for member in members), strict=True)
    values = tuple(math.fsum(seed) / len(members) for seed in seeds)
    mean, low, high = math.fsum(values) / len(values), None, None
    known = [(m.mean - m.low, m.high - m.mean) for m in members if m.low is not None and m.high is not None]
    if len(known) == len(members):
        below, above = (math.hypot(*widths) / len(members) for widths in zip(*known, strict=True))
        low, high = mean - below, mean + above
    partial = len(members) < len(average.members) or any(member.partial for member in members)
    return Cell(values, low, high, partial)
