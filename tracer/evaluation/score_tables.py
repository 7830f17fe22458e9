"""Tables of scored rows: one per metric in the paper's layout, and one of recall for data with captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracer.core.metrics import METRICS, Interval, accuracy, ece, ece_batched, sigmoid_ece
from tracer.evaluation.score import SCALED_ECE, Row
from tracer.evaluation.suites.shift import Suite
from tracer.evaluation.tables import Cell, Column, Table, tabulated

# After accuracy and the metrics that a test set's authors report.
SHOWN = (ece, ece_batched, SCALED_ECE, sigmoid_ece)

Results = Mapping[str, Sequence[Row]]  # by the name of the model's row in the tables


def score_tables(results: Results, suite: Suite, *, published: bool = True) -> list[Table]:
    """The tables of the models' results on a suite; notes under the last one say how each set was scored.

    Without `published`, measures that only serve to compare with published tables are left out.
    """
    labelled = [shift for shift in suite if shift.classes]
    own = [METRICS[shift.metric] for shift in labelled if shift.metric != accuracy.name]
    shown = [metric for metric in SHOWN if published or metric is not ece_batched]
    tables = []
    for metric in dict.fromkeys((accuracy, *own, *shown)):
        shifts = [shift for shift in labelled if metric not in own or shift.metric == metric.name]
        cells = {
            name: {row.shift: _cell(row) for row in rows if row.metric == metric.name}
            for name, rows in results.items()
        }
        if any(cells.values()):
            tables.append(tabulated(metric, replace(suite, shifts=tuple(shifts)), cells))
    for shift in suite:
        recalls = {
            name: {row.metric: _cell(row) for row in rows if row.shift == shift.name and "@" in row.metric}
            for name, rows in results.items()
        }
        if any(recalls.values()):
            tables.append(_retrieval(shift.name, recalls))
    tables[-1] = replace(tables[-1], notes=_notes(results, suite))
    return tables


def _notes(results: Results, suite: Suite) -> tuple[str, ...]:
    """The classes and the classifier of each test set, and the test sets that are missing."""
    rules = {
        name: [*reversed({row.shift: row.rule for row in reversed(rows)}.values())]
        for name, rows in results.items()
    }
    notes = next(iter(rules.values()))
    if any(other != notes for other in rules.values()):  # one model has a head and another has not
        notes = [f"{name}: {rule}" for name, own in rules.items() for rule in own]
    scored = {row.shift for rows in results.values() for row in rows}
    return (*notes, *(f"{shift.name}: not here" for shift in suite if shift.name not in scored))


def _retrieval(data: str, recalls: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Recall in both directions at every depth, for one data set with captions."""
    names = dict.fromkeys(name for cells in recalls.values() for name in cells)
    columns = (Column(name, name.replace("_to_", "→").replace("@", " R@"), "id") for name in names)
    return Table("recall", "higher", True, tuple(columns), tuple(recalls.items()), f"captions of {data}")


def _cell(row: Row) -> Cell:
    metric = METRICS.get(row.metric)
    ordered = metric is not None and metric.ordered  # resampling would change the order: no interval
    interval = Interval.unknown(row.value) if ordered else Interval(row.low, row.value, row.high)
    return Cell(interval, row.partial, row.n)
