"""The paper's table from the rows of `tracer eval`: ID, shifts, their averages and retained data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tracer.core.metrics import Interval, Metric, accuracy, ece, t_interval
from tracer.data.examples import Examples
from tracer.evaluation import tables
from tracer.evaluation.suites.imagenet import FOUR
from tracer.evaluation.suites.projection import Everything
from tracer.evaluation.suites.shift import Shift, Suite
from tracer.evaluation.tables.render import PARTIAL, WARNING
from tracer.report.comparison import Group, Setting
from tracer.report.run_data import number
from tracer.report.scored import Moment, row_count
from tracer.report.table import (
    EMPTY,
    HtmlCell,
    HtmlColumn,
    HtmlTable,
    caption,
    image_number,
    named,
    score_cell,
    starts,
)

Cells = Mapping[str, tables.Cell]


def suite_tables(group: Group) -> list[HtmlTable]:
    """Accuracy and calibration over all test sets; empty where no run was evaluated on any."""
    evaluated = [setting for setting in group.settings if _rows(setting, "after")]
    suite = _suite(evaluated)
    by_metric = (_table(metric, suite, evaluated) for metric in (accuracy, ece)) if suite.shifts else ()
    return [table for table in by_metric if table is not None]


def _table(metric: Metric[...], suite: Suite, settings: Sequence[Setting]) -> HtmlTable | None:
    sizes = _sizes(settings)
    models = starts([setting for setting in settings if _rows(setting, "before")])
    before = {name: _cells(setting, "before", metric, sizes) for name, setting in models.items()}
    after = {str(i): _cells(setting, "after", metric, sizes) for i, setting in enumerate(settings)}
    if not any(after.values()):
        return None
    pretrained = tables.tabulated(metric, suite, before)
    finetuned = tables.tabulated(metric, suite, after)
    index = {setting.runs[0].experiment.get("model"): i for i, setting in enumerate(models.values())}
    rows = [(HtmlCell(name, ""), *_line(finetuned, cells, {})) for name, cells in pretrained.rows]
    for i, (setting, (_, cells)) in enumerate(zip(settings, finetuned.rows, strict=True)):
        start = index.get(setting.runs[0].experiment.get("model"))
        line = _line(finetuned, cells, {} if start is None else pretrained.rows[start][1])
        best = [finetuned.mark(i, column.name) == "best" for column in finetuned.columns]
        rows.append((named(setting), *(replace(c, best=b) for c, b in zip(line, best, strict=True))))
    columns = [
        HtmlColumn("setting", numeric=False),
        *(_column(column, metric, sizes.get(column.name, 0)) for column in finetuned.columns),
    ]
    # Notes on all tables stand under the first of them.
    common = [
        caption(any(len(setting.finished) > 1 for setting in settings)),
        *_notes(settings, bool(models)),
    ]
    notes = common if metric is accuracy else []
    notes += [f"{WARNING}."] if finetuned.partial or pretrained.partial else []
    return HtmlTable(" ".join(notes), tuple(columns), tuple(rows), len(pretrained.rows), _title(metric))


def _title(metric: Metric[...]) -> str:
    return "Calibration error (ECE) over all test sets" if metric is ece else "Accuracy over all test sets"


def _column(column: tables.Column, metric: Metric[...], size: int) -> HtmlColumn:
    role = {"id": "ID: ", "retain": "kept: "}.get(column.role, "")
    return HtmlColumn(f"{role}{column.head}", better=metric.better, detail=image_number(size))


def _line(table: tables.Table, cells: Cells, since: Cells) -> Iterator[HtmlCell]:
    for column in table.columns:
        cell, start = cells.get(column.name), since.get(column.name)
        if cell is None:
            yield EMPTY
            continue
        html = score_cell(_estimate(cell), table.percent, None if start is None else start.mean)
        yield replace(html, text=f"{html.text}{PARTIAL}") if cell.partial else html


def _estimate(cell: tables.Cell) -> Interval:
    if len(cell.values) > 1:
        return t_interval(cell.values)
    if cell.low is None or cell.high is None:
        return Interval.unknown(cell.mean)
    return Interval(cell.low, cell.mean, cell.high)


def _rows(setting: Setting, moment: Moment) -> list[tuple[dict, ...]]:
    """The rows of the runs that were evaluated on most test sets: only these can be averaged over seeds."""
    scored = [run.scored[moment] for run in setting.finished if run.scored[moment]]
    most = max((len({row["shift"] for row in rows}) for rows in scored), default=0)
    return [rows for rows in scored if len({row["shift"] for row in rows}) == most]


def _cells(setting: Setting, moment: Moment, metric: Metric[...], sizes: Mapping[str, int]) -> Cells:
    """The setting's values on each test set, one per seed; the pretrained model counts once."""
    seeds = _rows(setting, moment)[: 1 if moment == "before" else None]
    by_shift: dict[str, list[dict]] = {}
    for rows in seeds:
        for row in rows:
            if row["metric"] == metric.name:
                by_shift.setdefault(row["shift"], []).append(row)
    return {
        name: tables.Cell(
            tuple(float(row["value"]) for row in rows),
            *((number(rows[0].get(end)) if len(rows) == 1 else None) for end in ("low", "high")),
            partial=any(row.get("partial") is True or row_count(row) < sizes[name] for row in rows),
        )
        for name, rows in by_shift.items()
        if len(rows) == len(seeds)
    }


def _sizes(settings: Sequence[Setting]) -> dict[str, int]:
    """The largest number of images of each test set; results on fewer images are partial."""
    sizes: dict[str, int] = {}
    for row in _all_rows(settings):
        sizes[row["shift"]] = max(sizes.get(row["shift"], 0), row_count(row))
    return sizes


def _all_rows(settings: Sequence[Setting]) -> Iterator[dict]:
    for setting in settings:
        for moment in ("after", "before"):
            for rows in _rows(setting, moment):
                yield from rows


def _suite(settings: Sequence[Setting]) -> Suite:
    """The test sets in the order of evaluation; only their names and roles are used."""
    rows = {row["shift"]: row for row in _all_rows(settings) if row["metric"] == accuracy.name}
    shifts = [Shift(name, row["role"], _absent, (), Everything(0)) for name, row in rows.items()]
    return Suite("evaluated", tuple(shifts), (FOUR,))


def _absent() -> Examples:
    raise ValueError("a report reads measures, never images")


def _notes(settings: Sequence[Setting], pretrained: bool) -> list[str]:
    """The rule by which each test set was scored, and how to add the pretrained model where it has no row."""
    rules: dict[str, list[str]] = {}
    for name, rule in dict.fromkeys((row["shift"], row.get("rule")) for row in _all_rows(settings)):
        if isinstance(rule, str):
            rules.setdefault(rule.removeprefix(f"{name}: "), []).append(name)
    notes = [f"Rule for {', '.join(names)}: {rule}." for rule, names in rules.items()]
    if not pretrained:
        notes.append("The same command without --weights adds the pretrained model.")
    return notes
