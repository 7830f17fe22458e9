"""Rows of measures as tables: one a measure in the paper's layout, and one of retrieval for data with captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracer.core.metrics import METRICS, Interval, Metric, accuracy, ece, ece_batched
from tracer.evaluation.score import SCALED_ECE, Row
from tracer.evaluation.suites import Opening, Suite
from tracer.evaluation.tables import Cell, Column, Table, cell, tabulated

SHOWN = (
    ece,
    ece_batched,
    SCALED_ECE,
)  # after accuracy and what a set's authors report; all others are in the rows

Results = Mapping[str, Sequence[Row]]  # of each model, by the name of its row


def score_tables(results: Results, suite: Suite, opening: Opening) -> list[Table]:
    """What is shown of the models' measures on a suite; under the last table, how each set was scored."""
    labelled = [shift for shift in suite if shift.classes]
    own = [METRICS[shift.metric] for shift in labelled if shift.metric != accuracy.name]
    drawn = []
    for metric in dict.fromkeys((accuracy, *own, *SHOWN)):
        meant = [shift for shift in labelled if metric not in own or shift.metric == metric.name]
        cells = {name: _cells(rows, metric) for name, rows in results.items()}
        if any(cells.values()):
            drawn.append(tabulated(metric, replace(suite, shifts=tuple(meant)), cells))
    drawn += [
        _retrieval(shift.name, results) for shift in suite if any(_recalls(shift.name, results).values())
    ]
    drawn[-1] = replace(drawn[-1], notes=_notes(results, opening))
    return drawn


def _cells(rows: Sequence[Row], metric: Metric[...]) -> dict[str, Cell]:
    return {row.shift: _cell(row) for row in rows if row.metric == metric.name}


def _notes(results: Results, opening: Opening) -> tuple[str, ...]:
    """Over which classes and by what each set was scored, and what is missing."""
    told = {
        name: [*reversed({row.shift: row.rule for row in reversed(rows)}.values())]
        for name, rows in results.items()
    }
    said = next(iter(told.values()))
    if any(other != said for other in told.values()):  # a head that one model has and another has not
        said = [f"{name}: {rule}" for name, rules in told.items() for rule in rules]
    return (*said, *(f"{name}: not here" for name in opening.absent))


def _retrieval(data: str, results: Results) -> Table:
    """Both ways at every depth, for one data set with captions."""
    found = _recalls(data, results)
    named = dict.fromkeys(name for cells in found.values() for name in cells)
    columns = (Column(name, name.replace("_to_", "→").replace("@", " R@"), "id") for name in named)
    return Table("recall", "higher", True, tuple(columns), tuple(found.items()), title=f"captions of {data}")


def _recalls(data: str, results: Results) -> dict[str, dict[str, Cell]]:
    return {
        name: {row.metric: _cell(row) for row in rows if row.shift == data and "@" in row.metric}
        for name, rows in results.items()
    }


def _cell(row: Row) -> Cell:
    metric = METRICS.get(row.metric)
    if metric is not None and metric.ordered:  # resampling would change the order, so there is no interval
        return cell(row.value, row.partial)
    return cell(Interval(row.low, row.value, row.high), row.partial)
