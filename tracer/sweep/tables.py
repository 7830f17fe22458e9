"""Tables of a sweep: all runs as CSV, and means with intervals over seeds as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tracer.core.markdown import markdown_table
from tracer.evaluation.verdict import plus_minus
from tracer.report.comparison import Group, Setting, compare, show, varied
from tracer.report.measures import Key, image_count, measured
from tracer.report.run_data import RunData, read_run, told_apart
from tracer.report.scored import Moment
from tracer.report.table import image_number
from tracer.storage.atomic import write_text
from tracer.sweep.product import Sweep

FURTHER = (("ece",), ("retention", "agreement"))  # calibration, and agreement with the pretrained model


def write_tables(sweep: Sweep, folder: Path) -> list[Path]:
    """Write `table.csv` and `table.md` of the finished runs, in the order of the sweep; deterministic."""
    finished = (run for run in sweep.by_folder(folder) if (run / "result.json").exists())
    runs = told_apart([read_run(run) for run in finished])
    files = {folder / "table.csv": run_table(runs), folder / "table.md": setting_tables(compare(runs))}
    for file, content in files.items():
        write_text(file, content)
    return list(files)


def run_table(runs: Sequence[RunData]) -> str:
    """One row per run, with all varied settings and all measurements, as CSV."""
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


def setting_tables(groups: Sequence[Group]) -> str:
    """Means with 95 % intervals, as one Markdown table per group of comparable runs.

    Over several seeds the intervals are Student's, of one seed those over its images.
    """
    tables = []
    for group in groups:
        keys = [key for key in (group.task, *group.retained) if key is not None]
        keys += [key for key in group.keys if key.path in FURTHER]
        rows = [["before", "", *(_cell(group.settings[0], key, "before") for key in keys)]]
        for setting in group.settings:
            cells = [_cell(setting, key, "after") for key in keys]
            rows.append([setting.label, str(len(setting.finished)), *cells])
        tables.append(markdown_table(["setting", "seeds", *(_head(group, key) for key in keys)], rows) + "\n")
    return "\n".join(tables)


def _head(group: Group, key: Key) -> str:
    counts = {image_count(run, key) for setting in group.settings for run in setting.finished}
    return f"{key.label}, {image_number(counts.pop())}" if len(counts) == 1 and counts != {0} else key.label


def _cell(setting: Setting, key: Key, moment: Moment) -> str:
    estimate = setting.estimate(key, moment)
    if estimate is None:
        return ""
    factor, digits = (100, 2) if key.percent else (1, 4)
    spread = f" ± {factor * estimate.half_width:.{digits}f}" if estimate.known else ""
    return f"{factor * estimate.value:.{digits}f}{spread}"


def closing_sentences(runs: Sequence[RunData]) -> list[str]:
    """For each group of comparable runs the best setting on the task, and how many others cannot be told from it."""
    sentences = []
    for group in compare(runs):
        scores = {
            setting.label: score
            for setting in group.settings
            if group.task is not None and (score := setting.estimate(group.task)) is not None
        }
        if len(scores) < 2:
            continue
        best = max(scores, key=lambda label: scores[label].value)
        near = sum(score.high >= scores[best].low for score in scores.values()) - 1
        tie = "none of the others reaches" if not near else f"{near} of the others reach"
        sentences.append(
            f"Best of {len(scores)} settings on the task: {best}, {plus_minus(scores[best])}; {tie} into its interval."
        )
    return sentences
