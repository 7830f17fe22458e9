"""Tables of scores, a row per setting: all measures of the runs, and the test sets of `tracer eval` as in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tracer.core.metrics import accuracy, ece
from tracer.evaluation.render import PARTIAL, WARNING
from tracer.evaluation.suites.imagenet import FOUR
from tracer.evaluation.tables import ORDER
from tracer.report.comparison import Group, Setting
from tracer.report.measures import Key, image_count
from tracer.report.scored import WEIGHTS, Moment
from tracer.report.table import (
    EMPTY,
    HtmlCell,
    HtmlColumn,
    HtmlTable,
    count_cell,
    image_number,
    named,
    score_cell,
)

MAX_MEASURES = 8  # in one table of the comparison, which then fits its page
ROLES = {"id": "ID: ", "retain": "kept: "}  # before the names of test sets


class Column(NamedTuple):
    """A measure, or the mean over several; `images` is the number of images as text."""

    label: str
    keys: tuple[Key, ...]
    images: str = ""


def comparison(group: Group, *, further: bool = False) -> HtmlTable | None:
    """Pretrained models, then every setting; a column per measure, with changes and intervals.

    The first measures, or as many after them with `further`.
    """
    start = MAX_MEASURES if further else 0
    keys = [key for key in group.keys if key.role is None][start : start + MAX_MEASURES]
    if not keys:
        return None
    columns = [Column(key.label, (key,), _images(group, key)) for key in keys]
    table = _table(group, group.finished, columns)
    if not _several(group.finished):
        return table
    seeds = [*[EMPTY] * table.fixed, *(count_cell(len(setting.finished)) for setting in group.finished)]
    rows = ((*row, count) for row, count in zip(table.rows, seeds, strict=True))
    return replace(table, columns=(*table.columns, HtmlColumn("seeds")), rows=tuple(rows))


def suite_tables(group: Group) -> list[HtmlTable]:
    """Accuracy and calibration over all test sets: ID, shifts, their averages, retained data."""
    settings = [setting for setting in group.finished if any(run.scored["after"] for run in setting.finished)]
    tables = []
    for metric, title in ((accuracy, "Accuracy"), (ece, "Calibration error (ECE)")):
        columns = list(_columns(group, metric.name))
        if columns:
            table = _table(group, settings, columns)
            notes = [] if tables else [table.caption, *_notes(settings)]  # of all tables
            warning = (
                [f"{WARNING}."] if any(PARTIAL in cell.text for row in table.rows for cell in row[1:]) else []
            )
            caption = " ".join([*notes, *warning])
            tables.append(replace(table, caption=caption, title=f"{title} over all test sets"))
    return tables


def _columns(group: Group, metric: str) -> Iterator[Column]:
    """A column for each test set with this metric, in the paper's order, with the averages after the shifts."""
    keys = [key for key in group.keys if key.role is not None and key.metric == metric]
    shifts = {key.data: key for key in keys if key.role == "ood"}
    averages = {"OOD": (*shifts,)} if len(shifts) > 1 else {}
    averages |= {FOUR.name: FOUR.members} if set(FOUR.members) < shifts.keys() else {}
    for role in ORDER:
        for key in keys:
            if key.role == role:
                yield Column(f"{ROLES.get(role, '')}{key.data}", (key,), image_number(group.sizes[key.data]))
        for name, members in averages.items() if role == "average" else ():
            yield Column(f"{name} avg ({len(members)})", tuple(shifts[each] for each in members))


def _table(group: Group, settings: Sequence[Setting], columns: Sequence[Column]) -> HtmlTable:
    """The rows of pretrained models, which stay on top, and of the settings, with the best of each column marked."""
    measured = [s for s in settings if any(s.mean(column.keys, "before") for column in columns)]
    first = [
        (HtmlCell(name, ""), *_row(group, setting, columns, "before"))
        for name, setting in starts(measured).items()
    ]
    rows = [[named(setting), *_row(group, setting, columns, "after")] for setting in settings]
    heads = [HtmlColumn("setting", numeric=False)]
    for i, (label, (key, *_), images) in enumerate(columns, 1):
        heads.append(HtmlColumn(label, better=key.better or "", detail=images))
        best = _best([row[i] for row in rows], key.better)
        for row in rows:
            row[i] = replace(row[i], best=row[i].text == best)
    return HtmlTable(caption(_several(settings)), tuple(heads), (*first, *map(tuple, rows)), fixed=len(first))


def _row(group: Group, setting: Setting, columns: Sequence[Column], moment: Moment) -> Iterator[HtmlCell]:
    """The setting's scores, with the change from the pretrained model; those on fewer images are marked as partial."""
    for _, keys, _ in columns:
        estimate, before = setting.mean(keys, moment), setting.mean(keys, "before")
        if estimate is None:
            yield EMPTY
            continue
        start = before.value if before is not None and moment == "after" else None
        cell = score_cell(estimate, keys[0].percent, start)
        yield replace(cell, text=f"{cell.text}{PARTIAL}") if group.partial(setting, keys, moment) else cell


def _best(cells: Sequence[HtmlCell], better: str | None) -> str | None:
    """The best value of a column as displayed; None where all are equal or no direction is better."""
    texts = {
        cell.order: cell.text for cell in cells if isinstance(cell.order, float) and PARTIAL not in cell.text
    }
    if better is None or len({*texts.values()}) < 2:
        return None
    return texts[max(texts) if better == "higher" else min(texts)]


def starts(settings: Sequence[Setting]) -> dict[str, Setting]:
    """The names of the pretrained models that the settings start from, each with its first setting."""
    models: dict[str, Setting] = {}
    for setting in settings:
        experiment = setting.runs[0].experiment
        models.setdefault(f"Pretrained {experiment.get('model')} {experiment.get('pretrained')}", setting)
    if len(models) != 1:
        return models
    random = settings[0].runs[0].experiment.get("pretrained") == "none"
    return {"Random start" if random else "Pretrained": settings[0]}


def _images(group: Group, key: Key) -> str:
    """The number of images behind a column."""
    counts = {image_count(run, key) for setting in group.finished for run in setting.finished}
    return image_number(counts.pop()) if len(counts) == 1 else ""


def _several(settings: Sequence[Setting]) -> bool:
    return any(len(setting.finished) > 1 for setting in settings)


def caption(several: bool) -> str:
    """The caption of a table of scores."""
    over = "over seeds (Student's t) where there are several, else over samples"
    return (
        "Below each value: change from the pretrained model in points, and the 95 % interval in brackets, "
        f"{over if several else 'over samples where their number is known'}. "
        "Bold: the best of its column, as rounded."
    )


def _notes(settings: Sequence[Setting]) -> Iterator[str]:
    """The rule by which each test set was scored, and how to add the pretrained model where it has no row."""
    runs = [run for setting in settings for run in setting.finished]
    rows = [row for run in runs for moment in WEIGHTS for row in run.scored[moment]]
    rules: dict[str, list[str]] = {}
    for name, rule in dict.fromkeys((row.data, row.rule.partition(": ")[2]) for row in rows):
        rules.setdefault(rule, []).append(name)
    yield from (f"Rule for {', '.join(names)}: {rule}." for rule, names in rules.items())
    if not any(run.scored["before"] for run in runs):
        yield "The same command without --weights adds the pretrained model."
