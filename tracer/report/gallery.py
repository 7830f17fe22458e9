"""Images chosen by rule: learned, forgotten, confidently wrong, and most changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.report.images import thumbnails
from tracer.report.label import cut
from tracer.report.paired import Paired
from tracer.report.run_data import RunData

MOST = 7  # images of each rule; four rules on two data sets make 56 on a page
LONGEST = 60  # letters of a name


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
    """Images of one rule; `total` images meet it."""

    title: str
    rule: str
    pictures: tuple[Picture, ...]
    total: int


@dataclass(frozen=True)
class Gallery:
    """The images of a data set, or a note on why there are none."""

    strips: tuple[Strip, ...]
    note: str = ""


class Choice(NamedTuple):
    """Rows in order of choice, and how many rows meet the rule."""

    title: str
    rule: str
    rows: list[int]
    total: int


def gallery(run: RunData, data: Paired, most: int = MOST) -> Gallery:
    """The images of a data set, found again by their ids; `most` of each rule."""
    choices = choose(data, most)
    try:
        uris = thumbnails(run, data, [row for choice in choices for row in choice.rows])
    except UserError as error:
        return Gallery((), f"No images are shown: {error}.")
    guesses = [_guesses(data, shares, hits) for shares, hits in zip(data.shares, data.hits, strict=True)]
    strips = [
        Strip(title, rule, tuple(_picture(data, row, uris[row], *guesses) for row in rows), total)
        for title, rule, rows, total in choices
    ]
    return Gallery(tuple(strips))


def choose(data: Paired, most: int = MOST) -> list[Choice]:
    """The rows that each rule chooses; of equal ones the first."""
    before, after = data.shares
    label = data.after.label
    right_before, right_after = map(torch.tensor, data.hits)
    gain = (after - before).gather(1, label[:, None])[:, 0]
    moved = (after - before).abs().sum(dim=1) / 2
    choices = [
        _choice(
            "Learned",
            "Wrong before, right now; the largest gains in the probability of the true class.",
            ~right_before & right_after,
            gain,
            most,
        ),
        _choice(
            "Forgotten",
            "Right before, wrong now; the largest losses in the probability of the true class.",
            right_before & ~right_after,
            -gain,
            most,
        ),
        _choice(
            "Most confident mistakes",
            "Wrong now; the most probable predictions.",
            ~right_after,
            after.amax(dim=1),
            most,
        ),
    ]
    rest = torch.ones(len(label), dtype=torch.bool)
    rest[[row for choice in choices for row in choice.rows]] = False
    rule = "Of the other images, those whose probabilities moved most (total variation distance)."
    return [*choices, _choice("Most changed", rule, rest & (moved > 0), moved, most)]


def _choice(title: str, rule: str, eligible: Tensor, score: Tensor, most: int) -> Choice:
    rows = torch.nonzero(eligible)[:, 0]
    order = torch.argsort(score[rows], descending=True, stable=True)
    return Choice(title, rule, rows[order][:most].tolist(), len(rows))


def _guesses(data: Paired, shares: Tensor, hits: list[bool]) -> Callable[[int], Guess]:
    """A function from a row to the class predicted there; of equal probabilities the one that counted."""

    def guess(row: int) -> Guess:
        best = int(data.after.label[row]) if hits[row] else int(shares[row].argmax())
        return Guess(cut(data.name_of(best), LONGEST), float(shares[row, best]), hits[row])

    return guess


def _picture(
    data: Paired, row: int, uri: str, before: Callable[[int], Guess], after: Callable[[int], Guess]
) -> Picture:
    label = data.name_of(int(data.after.label[row]))
    return Picture(cut(str(data.after.ids[row]), LONGEST), uri, cut(label, LONGEST), before(row), after(row))
