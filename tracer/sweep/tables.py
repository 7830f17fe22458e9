"""What a sweep found: every run as CSV, and settings with means and intervals over seeds as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tracer.report.account import Account, read_account
from tracer.report.comparison import Group, compare, show, varied
from tracer.report.measures import Key, measured
from tracer.report.spread import Estimate
from tracer.storage.atomic import write_text
from tracer.sweep.product import Sweep


def write_tables(sweep: Sweep, folder: Path) -> list[Path]:
    """`table.csv` and `table.md` of the finished runs, in the sweep's own order; equal results give equal bytes."""
    runs = [read_account(place) for place in sweep.placed(folder) if (place / "result.json").exists()]
    files = {folder / "table.csv": every_run(runs), folder / "table.md": by_setting(compare(runs))}
    for file, content in files.items():
        write_text(file, content)
    return list(files)


def every_run(runs: Sequence[Account]) -> str:
    """One row a run, with all that varied and all that was measured, as CSV."""
    names = [*varied(runs), "seed"]
    tables = [measured(run, "after") for run in runs]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", *names, *(".".join(key.path) for key in keys)])
    for run, table in zip(runs, tables, strict=True):
        values = [repr(table[key].value) if key in table else "" for key in keys]
        writer.writerow([run.name, *(show(run.settled.get(name)) for name in names), *values])
    return out.getvalue()


def by_setting(groups: Sequence[Group]) -> str:
    """Means with 95 % intervals over seeds; one table for each group of comparable runs."""
    return "\n".join(_markdown(group) for group in groups)


def _markdown(group: Group) -> str:
    keys = [key for key in (group.task, *group.kept, *_rest(group)) if key is not None]
    rows = [["setting", "seeds", *(key.label for key in keys)]]
    rows.append(["---", "---:", *("---:" for _ in keys)])
    before = [_cell(group.settings[0].estimate(key, "before"), key) for key in keys]
    rows.append(["before", "", *before])
    for setting in group.settings:
        found = [_cell(setting.estimate(key), key) for key in keys]
        rows.append([setting.label.replace("|", "\\|"), str(len(setting.finished)), *found])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _rest(group: Group) -> list[Key]:
    """Calibration and agreement with the pretrained model."""
    return [key for key in group.keys if key.path in (("ece",), ("retention", "agreement"))]


def _cell(estimate: Estimate | None, key: Key) -> str:
    if estimate is None:
        return ""
    factor, digits = (100, 2) if key.percent else (1, 4)
    value = f"{factor * estimate.value:.{digits}f}"
    if estimate.seeds > 1 and estimate.half is not None:
        return f"{value} ± {factor * estimate.half:.{digits}f}"
    return value
