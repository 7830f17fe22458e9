"""The tables of the paper: their numbers, from published.csv, and ours in the same layout with theirs in brackets.

Tables 1 and 2; the appendix's tables of ResNet-50 and ViT-L/14, which Table 3 sums up; and the four ablations, accuracy
in per cent and ECE over batches. They are as printed, also where the printed mean over the shifts is not that of the
printed values (docs/decisions.md).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from tracer.core.markdown import markdown_table
from tracer.core.metrics import mean_std
from tracer.evaluation.render import MISSING, PARTIAL, WARNING
from tracer.evaluation.suites.imagenet import SETS
from tracer.methods.base import method, methods
from tracer.report.scored import answers_of
from tracer.runs.experiment import Experiment

AVERAGE = "average"
COLUMNS = (*SETS, AVERAGE)
Values = Mapping[tuple[str, str], Mapping[str, float]]  # by row and metric, then by column
METRICS = {
    "accuracy": ("Accuracy in per cent", 100.0, 2),
    "ece_batched": ("ECE, mean over batches of 512", 1.0, 4),
}
NOTE = "Ours: mean ± standard deviation over seeds. In brackets: the paper."


@cache
def published(table: str) -> Values:
    """The values of a table."""
    text = (files("tracer.recipes") / "published.csv").read_text(encoding="utf-8")
    lines = [line for line in csv.DictReader(text.splitlines()) if line["table"] == table]
    return {
        (line["row"], line["metric"]): {column: float(line[column]) for column in COLUMNS if line[column]}
        for line in lines
    }


class Score(NamedTuple):
    """A number, and whether test images were missing."""

    value: float
    partial: bool


class Published(NamedTuple):
    """A table of the paper: its title, the row of an experiment, and the printed values."""

    title: str
    row: Callable[[Experiment], str]
    values: Values

    def __call__(self, runs: Mapping[Path, Experiment]) -> str:
        """Both tables as Markdown: mean and standard deviation over seeds, and in brackets the published value."""
        text = "\n\n".join([*(self._table(runs, metric) for metric in METRICS), NOTE])
        return f"{text} {WARNING}.\n" if PARTIAL in text else f"{text}\n"

    def _table(self, runs: Mapping[Path, Experiment], metric: str) -> str:
        name, factor, digits = METRICS[metric]
        printed = {column for values in self.values.values() for column in values} or SETS
        shifts = [key for key in SETS if key != "val" and key in printed]
        columns = ["val", *shifts, AVERAGE]
        scores: dict[str, list[dict[str, Score]]] = {}  # of each row
        for folder, experiment in runs.items():
            scored = _scores(folder, metric, shifts, factor)
            scores.setdefault(self.row(experiment), []).extend([scored] if scored else [])
        rows = []
        for row, seeds in scores.items():
            theirs = self.values.get((row, metric), {})
            cells = [
                _cell([each[key] for each in seeds if key in each], theirs.get(key), digits)
                for key in columns
            ]
            rows.append([method(row).title if row in methods() else row, str(len(seeds)), *cells])
        heads = [*(SETS[key].short for key in columns[:-1]), f"Avg. of {len(shifts)} shifts"]
        return f"**{self.title}. {name}**\n\n" + markdown_table(["", "seeds", *heads], rows)


def _scores(folder: Path, metric: str, shifts: Sequence[str], factor: float) -> dict[str, Score]:
    """The scores of a run by column; the average only if every shift was scored."""
    keys = {each.name: key for key, each in SETS.items()}
    answers = answers_of(folder, "after", [])
    rows = [row for each in answers for row in each.estimates if row.metric == metric]
    scores = {keys[row.data]: Score(factor * row.value, row.partial) for row in rows if row.data in keys}
    members = [scores[key] for key in shifts if key in scores]
    if len(members) == len(shifts):
        mean = sum(each.value for each in members) / len(members)
        scores[AVERAGE] = Score(mean, any(each.partial for each in members))
    return scores


def _cell(scores: Sequence[Score], theirs: float | None, digits: int) -> str:
    printed = "" if theirs is None else f" ({theirs:.{digits}f})"
    if not scores:
        return f"{MISSING}{printed}"
    mean, std, _ = mean_std(each.value for each in scores)
    mark = PARTIAL if any(each.partial for each in scores) else ""
    spread = "" if std is None else f" ± {std:.{digits}f}"
    return f"{mean:.{digits}f}{mark}{spread}{printed}"
