"""A figure as data, from which HTML, SVG and CSV are made."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Literal, NamedTuple

Mark = Literal["line", "points", "both"]
BASE = -1  # the slot of the pretrained model, drawn in grey


@dataclass(frozen=True)
class Box:
    """Width, height and margins in the units of the SVG."""

    width: int = 380
    height: int = 250
    left: int = 46
    right: int = 14
    top: int = 24
    bottom: int = 38


SMALL, LARGE, SQUARE = Box(), Box(width=560, height=400, left=52, bottom=44), Box(width=300, height=290)


@dataclass(frozen=True)
class Axis:
    """An axis; `names` are the labels of the positions 0, 1, 2, …"""

    label: str
    percent: bool = False
    log: bool = False
    names: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False  # ticks at integers only


class Point(NamedTuple):
    """A point with the ends of its interval, if known; `size` is its radius relative to the usual one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    size: float = 1.0


@dataclass(frozen=True)
class Series:
    """Points of one colour."""

    name: str
    slot: int
    points: tuple[Point, ...]
    mark: Mark = "line"
    guide: bool = False  # a thin line that is not in the legend
    named: bool = True  # its name may be written beside it

    @property
    def intervals(self) -> list[tuple[float, float, float]]:
        """Where an interval is known: the position, its low and its high end."""
        return [(p.x, p.low, p.high) for p in self.points if p.low is not None and p.high is not None]

    def thinned(self, most: int) -> Series:
        """The series with at most `most` points, each the mean of neighbours, as are the ends of its interval."""
        n = len(self.points)
        if n <= most:
            return self
        edges = [round(i * n / most) for i in range(most + 1)]
        parts = (self.points[start:end] for start, end in pairwise(edges))
        return replace(self, points=tuple(map(_merged, parts)))


@dataclass(frozen=True)
class Chart:
    """A figure; `name` is its file name and its id on the page."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    diagonal: bool = False
    labelled: bool = False  # names of series are written beside their last point
    own_legend: bool = False  # its series are not the page's settings, so it has a legend of its own

    @property
    def box(self) -> Box:
        return LARGE if self.labelled else SQUARE if self.diagonal else SMALL

    def thinned(self, most: int) -> Chart:
        """The chart with at most `most` points per series."""
        return replace(self, series=tuple(series.thinned(most) for series in self.series))

    def csv(self) -> str:
        """One line per point: series, x, y, ends of the interval and note."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["series", self.x.label, self.y.label, "low", "high", "note"])
        for series in self.series:
            for x, y, low, high, note, _ in series.points:
                place = spreadsheet_cell(self.x.names[int(x)]) if self.x.names else repr(x)
                writer.writerow(
                    [spreadsheet_cell(series.name), place, repr(y), low, high, spreadsheet_cell(note)]
                )
        return out.getvalue()


def spreadsheet_cell(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _merged(points: Sequence[Point]) -> Point:
    """The last of these points with the means of all of them."""

    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    y, low, high = fmean(p.y for p in points), mean(p.low for p in points), mean(p.high for p in points)
    return points[-1]._replace(y=y, low=low, high=high)


def slug(text: str) -> str:
    """The text as part of a file name or an id: ASCII letters, digits and hyphens."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text).split()) or "x"
