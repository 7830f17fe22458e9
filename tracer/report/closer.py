"""A closer look at one run: its images, classes and confusions on one or two data sets."""

from __future__ import annotations

from typing import NamedTuple

from tracer.report.comparison import Group
from tracer.report.gallery import Gallery, gallery
from tracer.report.next_steps import best_setting
from tracer.report.paired import Paired, paired_sets
from tracer.report.per_class import Matrix, class_table, confusion_table, matrix
from tracer.report.table import HtmlTable

ORDER = ("id", "", "retain", "ood")  # of roles; "" is the held-out set


class DataSet(NamedTuple):
    """What changed on one data set."""

    data: Paired
    gallery: Gallery
    classes: HtmlTable
    confusions: HtmlTable | None
    matrix: Matrix | None


class Closer(NamedTuple):
    """The data sets of one run; `note` says which run it is and what is left out."""

    sets: tuple[DataSet, ...]
    note: str


def closer_look(group: Group) -> Closer | None:
    """The setting that learned most, on the task and on what it should retain; None without predictions."""
    finished = [setting for setting in group.settings if setting.finished]
    if not finished:
        return None
    setting = best_setting(finished)
    run = setting.finished[0]
    sets, others = chosen_sets([*paired_sets(run)])
    if not sets:
        return None
    notes = []
    if len(group.runs) > 1:
        notes.append(
            f"Of {run.name} ({setting.label}), which is best on the task; tracer report RUN shows another."
        )
    if others:
        listed = ", ".join(others[:8]) + (" and others" if len(others) > 8 else "")
        notes.append(f"Not shown here, to keep the page small: {listed}.")
    looks = (
        DataSet(data, gallery(run, data), class_table(data), confusion_table(data), matrix(data))
        for data in sets
    )
    return Closer(tuple(looks), " ".join(notes))


def chosen_sets(sets: list[Paired]) -> tuple[list[Paired], list[str]]:
    """One data set of the task and one of what should be retained, else of a shift; and the names of the others."""
    ordered = sorted(sets, key=lambda data: ORDER.index(data.role))
    task = [data for data in ordered if data.role in ORDER[:2]][:1]
    rest = [data for data in ordered if data.role in ORDER[2:]][:1]
    return task + rest, [data.title for data in sets if data not in task + rest]
