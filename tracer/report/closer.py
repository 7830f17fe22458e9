"""A closer look at one run: the data sets that show what changed, and their images, chosen by rule."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.report.comparison import Group
from tracer.report.headline import best_setting
from tracer.report.images import thumbnails
from tracer.report.paired import Paired, paired_sets
from tracer.report.run_data import RunData
from tracer.report.templates import cut

ORDER = ("id", "task", "retain", "ood")  # of roles; task is the held-out set
MOST = 7  # images of each rule; four rules on two data sets make 56 on a page
LONGEST = 60  # letters of a name


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


class Guess(NamedTuple):
    """A predicted class with its probability."""

    name: str
    share: float
    right: bool


class Picture(NamedTuple):
    """An image with its true class and what was predicted before and after."""

    id: str
    uri: str
    label: str
    before: Guess
    after: Guess


class Strip(NamedTuple):
    """Images of one rule: their rows among the predictions, and the number of images that meet it."""

    title: str
    rule: str
    rows: list[int]
    total: int
    pictures: tuple[Picture, ...] = ()


class Gallery(NamedTuple):
    """The images of a data set, or a note on why there are none."""

    strips: tuple[Strip, ...]
    note: str = ""


def gallery(run: RunData, data: Paired, most: int = MOST) -> Gallery:
    """The images of a data set, found again by their ids; `most` of each rule."""
    strips = choose(data, most)
    try:
        uris = thumbnails(run, data, [row for strip in strips for row in strip.rows])
    except UserError as error:
        return Gallery((), f"No images are shown: {error}.")
    return Gallery(
        tuple(
            strip._replace(pictures=tuple(_picture(data, row, uris[row]) for row in strip.rows))
            for strip in strips
        )
    )


def choose(data: Paired, most: int = MOST) -> list[Strip]:
    """The rows that each rule chooses, without their pictures; of equal ones the first."""
    before, after = data.shares
    label = data.after.label
    right_before, right_after = map(torch.tensor, data.hits)
    gain = (after - before).gather(1, label[:, None])[:, 0]
    moved = (after - before).abs().sum(dim=1) / 2

    def strip(title: str, rule: str, eligible: Tensor, score: Tensor) -> Strip:
        rows = torch.nonzero(eligible)[:, 0]
        order = torch.argsort(score[rows], descending=True, stable=True)
        return Strip(title, rule, rows[order][:most].tolist(), len(rows))

    rule = "Wrong before, right now; the largest gains in the probability of the true class."
    strips = [strip("Learned", rule, ~right_before & right_after, gain)]
    rule = "Right before, wrong now; the largest losses in the probability of the true class."
    strips.append(strip("Forgotten", rule, right_before & ~right_after, -gain))
    rule = "Wrong now; the most probable predictions."
    strips.append(strip("Most confident mistakes", rule, ~right_after, after.amax(dim=1)))
    rest = torch.ones(len(label), dtype=torch.bool)
    rest[[row for each in strips for row in each.rows]] = False
    rule = "Of the other images, those whose probabilities moved most (total variation distance)."
    return [*strips, strip("Most changed", rule, rest & (moved > 0), moved)]


def _picture(data: Paired, row: int, uri: str) -> Picture:
    label = int(data.after.label[row])
    guesses = []
    for shares, hits in zip(data.shares, data.hits, strict=True):
        best = (
            label if hits[row] else int(shares[row].argmax())
        )  # of equal probabilities the one that counted
        guesses.append(Guess(cut(data.name_of(best), LONGEST), float(shares[row, best]), hits[row]))
    name = cut(str(data.after.ids[row]), LONGEST)
    return Picture(name, uri, cut(data.name_of(label), LONGEST), *guesses)
