"""Tables of results in the paper's layout: a row per model, a column per test set, and averages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tracer.core.metrics import (
    METRICS,
    Interval,
    Metric,
    accuracy,
    ece,
    ece_batched,
    independent_mean,
    sigmoid_ece,
)
from tracer.evaluation.score import SCALED_ECE
from tracer.evaluation.suites.shift import Average, Suite
from tracer.measure.answers import Estimate, Role

Mark = Literal["best", "second", ""]
ORDER = ("id", "ood", "average", "retain")  # of columns, as in the paper; retained data come last
# After accuracy.
SHOWN = (ece, ece_batched, SCALED_ECE, sigmoid_ece)

Results = Mapping[str, Sequence[Estimate]]  # by the name of the model's row in the tables


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


def score_tables(results: Results, suite: Suite, *, published: bool = True) -> list[Table]:
    """The tables of the models' results on a suite; notes under the last one say how each set was scored.

    Without `published`, measures that only serve to compare with published tables are left out.
    """
    labelled = [shift for shift in suite if shift.classes]
    shown = [metric for metric in SHOWN if published or metric is not ece_batched]
    tables = []
    for metric in (accuracy, *shown):
        cells = {
            name: {row.data: _cell(row) for row in rows if row.metric == metric.name}
            for name, rows in results.items()
        }
        if any(cells.values()):
            tables.append(tabulated(metric, replace(suite, shifts=tuple(labelled)), cells))
    for shift in suite:
        recalls = {
            name: {row.metric: _cell(row) for row in rows if row.data == shift.name and "@" in row.metric}
            for name, rows in results.items()
        }
        if any(recalls.values()):
            tables.append(_retrieval(shift.name, recalls))
    tables[-1] = replace(tables[-1], notes=_notes(results, suite))
    return tables


def _notes(results: Results, suite: Suite) -> tuple[str, ...]:
    """The classes and the classifier of each test set, and the test sets that are missing."""
    rules = {
        name: [*reversed({row.data: row.rule for row in reversed(rows)}.values())]
        for name, rows in results.items()
    }
    notes = next(iter(rules.values()))
    if any(other != notes for other in rules.values()):  # one model has a head and another has not
        notes = [f"{name}: {rule}" for name, own in rules.items() for rule in own]
    scored = {row.data for rows in results.values() for row in rows}
    return (*notes, *(f"{shift.name}: not here" for shift in suite if shift.name not in scored))


def _retrieval(data: str, recalls: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Recall in both directions at every depth, for one data set with captions."""
    names = dict.fromkeys(name for cells in recalls.values() for name in cells)
    columns = (Column(name, name.replace("_to_", "→").replace("@", " R@"), "id") for name in names)
    return Table("recall", "higher", True, tuple(columns), tuple(recalls.items()), f"captions of {data}")


def _cell(row: Estimate) -> Cell:
    metric = METRICS.get(row.metric)
    ordered = metric is not None and metric.ordered  # resampling would change the order: no interval
    interval = Interval.unknown(row.value) if ordered else Interval(row.low, row.value, row.high)
    return Cell(interval, row.partial, row.n)
