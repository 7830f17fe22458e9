"""The paper's table: ID, every shift, their averages and what was retained, from what `tracer eval` has left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tracer.core.metrics import Metric, accuracy, ece
from tracer.data.examples import Examples
from tracer.evaluation import tables
from tracer.evaluation.suites.imagenet import FOUR
from tracer.evaluation.suites.projection import Everything
from tracer.evaluation.suites.shift import Shift, Suite
from tracer.evaluation.tables.render import PARTIAL, WARNING
from tracer.report.comparison import Group, Setting
from tracer.report.number import number
from tracer.report.scored import Moment
from tracer.report.spread import Estimate, over_seeds
from tracer.report.table import EMPTY, Cell, Column, Table, caption, named, scored, starts

Cells = Mapping[str, tables.Cell]


def suite_tables(group: Group) -> list[Table]:
    """Accuracy and calibration over all test sets; nothing where no run was evaluated on any."""
    done = [setting for setting in group.settings if _rows(setting, "after")]
    suite = _suite(done)
    made = (_table(metric, suite, done) for metric in (accuracy, ece)) if suite.shifts else ()
    return [table for table in made if table is not None]


def _table(metric: Metric[...], suite: Suite, done: Sequence[Setting]) -> Table | None:
    sizes = _sizes(done)
    first = starts([setting for setting in done if _rows(setting, "before")])
    before = {name: _cells(setting, "before", metric, sizes) for name, setting in first.items()}
    after = {str(i): _cells(setting, "after", metric, sizes) for i, setting in enumerate(done)}
    if not any(after.values()):
        return None
    above = tables.tabulated(metric, suite, before)
    wide = tables.tabulated(metric, suite, after)
    origin = {setting.runs[0].experiment.get("model"): i for i, setting in enumerate(first.values())}
    rows = [(Cell(name, ""), *_line(wide, cells, {})) for name, cells in above.rows]
    for i, (setting, (_, cells)) in enumerate(zip(done, wide.rows, strict=True)):
        at = origin.get(setting.runs[0].experiment.get("model"))
        since = {} if at is None else above.rows[at][1]
        line = _line(wide, cells, since)
        best = [wide.mark(i, column.name) == "best" for column in wide.columns]
        rows.append((named(setting), *(replace(c, best=b) for c, b in zip(line, best, strict=True))))
    columns = [Column("setting", numeric=False), *(_column(c, metric) for c in wide.columns)]
    # What holds for all tables is said under the first of them.
    told = [caption(any(len(setting.finished) > 1 for setting in done)), *_notes(done, bool(first))]
    told = told if metric is accuracy else []
    told += [f"{WARNING}."] if wide.partial or above.partial else []
    return Table(" ".join(told), tuple(columns), tuple(rows), len(above.rows), _title(metric))


def _title(metric: Metric[...]) -> str:
    return "Calibration error (ECE) over all test sets" if metric is ece else "Accuracy over all test sets"


def _column(column: tables.Column, metric: Metric[...]) -> Column:
    role = {"id": "ID: ", "retain": "kept: "}.get(column.role, "")
    return Column(f"{role}{column.head}", better=metric.better)


def _line(table: tables.Table, cells: Cells, since: Cells) -> Iterator[Cell]:
    for column in table.columns:
        cell, start = cells.get(column.name), since.get(column.name)
        if cell is None:
            yield EMPTY
            continue
        made = scored(_estimate(cell), table.percent, None if start is None else start.mean)
        yield replace(made, text=f"{made.text}{PARTIAL}") if cell.partial else made


def _estimate(cell: tables.Cell) -> Estimate:
    return over_seeds(cell.values) if len(cell.values) > 1 else Estimate(cell.mean, cell.low, cell.high)


def _rows(setting: Setting, moment: Moment) -> list[tuple[dict, ...]]:
    """What was measured of the runs that were measured on most, a seed each: only these can be averaged."""
    found = [run.scored[moment] for run in setting.finished if run.scored[moment]]
    most = max((len({row["shift"] for row in rows}) for rows in found), default=0)
    return [rows for rows in found if len({row["shift"] for row in rows}) == most]


def _cells(setting: Setting, moment: Moment, metric: Metric[...], sizes: Mapping[str, int]) -> Cells:
    """The setting's value on each test set, one for each seed; the pretrained model counts once."""
    seeds = _rows(setting, moment)[: 1 if moment == "before" else None]
    found: dict[str, list[dict]] = {}
    for rows in seeds:
        for row in rows:
            if row["metric"] == metric.name:
                found.setdefault(row["shift"], []).append(row)
    return {
        name: tables.Cell(
            tuple(float(row["value"]) for row in rows),
            *((number(rows[0].get(end)) if len(rows) == 1 else None) for end in ("low", "high")),
            partial=any(row.get("partial") is True or _size(row) < sizes[name] for row in rows),
        )
        for name, rows in found.items()
        if len(rows) == len(seeds)
    }


def _size(row: dict) -> int:
    return row["n"] if isinstance(row.get("n"), int) else 0


def _sizes(done: Sequence[Setting]) -> dict[str, int]:
    """Images of each test set: whoever was measured on fewer than another was measured on something else."""
    sizes: dict[str, int] = {}
    for row in _every(done):
        sizes[row["shift"]] = max(sizes.get(row["shift"], 0), _size(row))
    return sizes


def _every(done: Sequence[Setting]) -> Iterator[dict]:
    for setting in done:
        for moment in ("after", "before"):
            for rows in _rows(setting, moment):
                yield from rows


def _suite(done: Sequence[Setting]) -> Suite:
    """The test sets in the order in which they were measured; here only names and roles matter."""
    found = {row["shift"]: row for row in _every(done) if row["metric"] == accuracy.name}
    shifts = [Shift(name, row["role"], _absent, (), Everything(0)) for name, row in found.items()]
    return Suite("evaluated", tuple(shifts), (FOUR,))


def _absent() -> Examples:
    raise ValueError("a report reads measures, never images")


def _notes(done: Sequence[Setting], begun: bool) -> list[str]:
    """By which rule each test set was scored, and how the pretrained model gets its row."""
    rules: dict[str, list[str]] = {}
    for name, rule in dict.fromkeys((row["shift"], row.get("rule")) for row in _every(done)):
        if isinstance(rule, str):
            rules.setdefault(rule.removeprefix(f"{name}: "), []).append(name)
    told = [f"Rule for {', '.join(names)}: {rule}." for rule, names in rules.items()]
    return told if begun else [*told, "The same command with --weights pretrained adds the pretrained model."]
