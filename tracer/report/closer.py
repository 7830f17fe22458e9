"""A closer look at one run: its images, classes and confusions on one or two data sets."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.evaluation.verdict import MIN_IMAGES, plus_minus
from tracer.report.comparison import Group
from tracer.report.gallery import Gallery, gallery
from tracer.report.next_steps import best_setting
from tracer.report.paired import Paired, paired_sets
from tracer.report.per_class import Matrix, class_table, confusion_table, matrix
from tracer.report.run_data import RunData
from tracer.report.scale import points
from tracer.report.table import HtmlTable

ORDER = ("id", "", "retain", "ood")  # of roles; "" is the held-out set


@dataclass(frozen=True)
class DataSet:
    """What changed on one data set."""

    title: str
    levels: str
    gallery: Gallery
    classes: HtmlTable
    confusions: HtmlTable | None
    matrix: Matrix | None


@dataclass(frozen=True)
class Closer:
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
    return Closer(tuple(_look(run, data) for data in sets), " ".join(notes))


def chosen_sets(sets: list[Paired]) -> tuple[list[Paired], list[str]]:
    """One data set of the task and one of what should be retained, else of a shift; and the names of the others."""
    ordered = sorted(sets, key=lambda data: ORDER.index(data.role))
    task = [data for data in ordered if data.role in ORDER[:2]][:1]
    rest = [data for data in ordered if data.role in ORDER[2:]][:1]
    return task + rest, [title(data) for data in sets if data not in task + rest]


def _look(run: RunData, data: Paired) -> DataSet:
    return DataSet(
        title(data),
        levels(data),
        gallery(run, data),
        class_table(data),
        confusion_table(data),
        matrix(data),
    )


def title(data: Paired) -> str:
    """The heading of a data set: its name, or that it is the held-out one."""
    return "Held-out images" if not data.role else data.name


def levels(data: Paired) -> str:
    """Accuracy before and after with the paired difference, which few images cannot tell: as in the headline."""
    before, after, difference, n = data.change
    if n < MIN_IMAGES:
        return f"{plus_minus(before)} → {plus_minus(after)} of {n} images, too few to tell."
    half = 100 * difference.half_width
    noise = "more than noise" if data.change.clear else "within noise"
    return (
        f"{plus_minus(before)} → {plus_minus(after)} of {n} images: "
        f"{points(difference.value)} ± {half:.1f} points, {noise}."
    )
