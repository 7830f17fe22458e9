"""The paper's table from the rows of `tracer eval`: ID, shifts, their averages and retained data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tracer.core.metrics import Interval, Metric, accuracy, ece, t_interval
from tracer.data.examples import Examples
from tracer.evaluation import tables
from tracer.evaluation.suites.imagenet import FOUR
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
ROLES = {"id": "ID: ", "retain": "kept: "}  # before the names of columns


def suite_tables(group: Group) -> list[HtmlTable]:
    """Accuracy and calibration over all test sets; empty where no run was evaluated on any."""
    settings = [setting for setting in group.settings if _rows(setting, "after")]
    rows = [
        row for s in settings for moment in ("after", "before") for seed in _rows(s, moment) for row in seed
    ]
    roles = {row["shift"]: row["role"] for row in rows if row["metric"] == accuracy.name}
    if not roles:
        return []
    # Only names and roles of the test sets are used.
    shifts = (Shift(name, role, _absent, ()) for name, role in roles.items())
    suite = Suite("evaluated", tuple(shifts), (FOUR,))
    sizes: dict[str, int] = {}  # the largest number of images of each test set: results on fewer are partial
    for row in rows:
        sizes[row["shift"]] = max(sizes.get(row["shift"], 0), row_count(row))
    by_metric = [
        # Notes on all tables stand under the first of them.
        _table("Accuracy over all test sets", accuracy, suite, settings, sizes, _notes(settings, rows)),
        _table("Calibration error (ECE) over all test sets", ece, suite, settings, sizes, []),
    ]
    return [table for table in by_metric if table is not None]


def _table(
    title: str,
    metric: Metric[...],
    suite: Suite,
    settings: Sequence[Setting],
    sizes: Mapping[str, int],
    notes: list[str],
) -> HtmlTable | None:
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
    columns = [HtmlColumn("setting", numeric=False)]
    for column in finetuned.columns:
        label, images = f"{ROLES.get(column.role, '')}{column.head}", image_number(sizes.get(column.name, 0))
        columns.append(HtmlColumn(label, better=metric.better, detail=images))
    warning = [f"{WARNING}."] if finetuned.partial or pretrained.partial else []
    return HtmlTable(" ".join([*notes, *warning]), tuple(columns), tuple(rows), len(pretrained.rows), title)


def _line(table: tables.Table, cells: Cells, since: Cells) -> Iterator[HtmlCell]:
    for column in table.columns:
        cell, start = cells.get(column.name), since.get(column.name)
        if cell is None:
            yield EMPTY
            continue
        html = score_cell(_estimate(cell), table.percent, None if start is None else start.mean)
        yield replace(html, text=f"{html.text}{PARTIAL}") if cell.partial else html


def _estimate(cell: tables.Cell) -> Interval:
    if len(cell.values) > 1 or cell.low is None or cell.high is None:
        return t_interval(cell.values)  # of one seed, without an interval
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


def _absent() -> Examples:
    raise ValueError("a report reads measures, never images")


def _notes(settings: Sequence[Setting], rows: Sequence[dict]) -> list[str]:
    """The rule by which each test set was scored, and how to add the pretrained model where it has no row."""
    rules: dict[str, list[str]] = {}
    for name, rule in dict.fromkeys((row["shift"], row.get("rule")) for row in rows):
        if isinstance(rule, str):
            rules.setdefault(rule.removeprefix(f"{name}: "), []).append(name)
    notes = [caption(any(len(setting.finished) > 1 for setting in settings))]
    notes += [f"Rule for {', '.join(names)}: {rule}." for rule, names in rules.items()]
    if not any(_rows(setting, "before") for setting in settings):
        notes.append("The same command without --weights adds the pretrained model.")
    return notes
