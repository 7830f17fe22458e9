"""A closer look at one run: which of its data sets show what changed."""

from __future__ import annotations

from typing import NamedTuple

from tracer.report.comparison import Group
from tracer.report.headline import best_setting
from tracer.report.paired import Paired, paired_sets
from tracer.report.run_data import RunData

ORDER = ("id", "", "retain", "ood")  # of roles; "" is the held-out set


class Closer(NamedTuple):
    """The data sets of one run; `note` says which run it is and what is left out."""

    run: RunData
    sets: list[Paired]
    note: str


def closer_look(group: Group) -> Closer | None:
    """The setting that learned most, on the task and on what it should retain; None without predictions."""
    if not group.finished:
        return None
    setting = best_setting(group.finished)
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
    return Closer(run, sets, " ".join(notes))


def chosen_sets(sets: list[Paired]) -> tuple[list[Paired], list[str]]:
    """One data set of the task and one of what should be retained, else of a shift; and the names of the others."""
    ordered = sorted(sets, key=lambda data: ORDER.index(data.role))
    task = [data for data in ordered if data.role in ORDER[:2]][:1]
    rest = [data for data in ordered if data.role in ORDER[2:]][:1]
    return task + rest, [data.title for data in sets if data not in task + rest]
