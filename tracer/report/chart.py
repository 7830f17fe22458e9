"""A figure as data, from which HTML, SVG, PDF and CSV are made."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

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


@dataclass(frozen=True)
class Series:
    """Points of one colour; `low` and `high` are the ends of intervals, `notes` describe single points."""

    name: str
    slot: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    notes: tuple[str, ...] = ()
    sizes: tuple[float, ...] = ()  # radius relative to the usual one
    mark: Mark = "line"
    guide: bool = False  # a thin line that is not in the legend
    named: bool = True  # its name may be written beside it

    def __post_init__(self) -> None:
        parts = (self.x, self.y, self.low, self.high, self.notes, self.sizes)
        lengths = {len(part) for part in parts if part}
        if len(lengths) > 1:
            raise ValueError(f"{self.name}: coordinates of different lengths {sorted(lengths)}")

    @property
    def points(self) -> list[tuple[float, float]]:
        return list(zip(self.x, self.y, strict=True))

    @property
    def intervals(self) -> list[tuple[float, float, float]]:
        """Where an interval is known: the position, its low and its high end."""
        ends = zip(self.x, self.low, self.high, strict=bool(self.low))
        return [(at, low, high) for at, low, high in ends if low is not None and high is not None]


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
        return replace(self, series=tuple(thinned(series, most) for series in self.series))

    def csv(self) -> str:
        """One line per point: series, x, y, ends of the interval and note."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["series", self.x.label, self.y.label, "low", "high", "note"])
        for series in self.series:
            for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
                place = _cell(self.x.names[int(x)]) if self.x.names else repr(x)
                rest = [series.low[i] if series.low else None, series.high[i] if series.high else None]
                note = series.notes[i] if series.notes else ""
                writer.writerow([_cell(series.name), place, repr(y), *rest, _cell(note)])
        return out.getvalue()


def _cell(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def thinned(series: Series, most: int) -> Series:
    """The series with at most `most` points, each the mean of neighbours, as are the ends of its interval."""
    n = len(series.x)
    if n <= most:
        return series
    edges = [round(i * n / most) for i in range(most + 1)]
    parts = [range(a, b) for a, b in pairwise(edges) if b > a]

    def mean(values: Sequence[float | None]) -> tuple[Any, ...]:
        known = ([v for i in part if (v := values[i]) is not None] for part in parts) if values else ()
        return tuple(math.fsum(each) / len(each) if each else None for each in known)

    def pick(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[part[-1]] for part in parts) if values else ()

    return replace(
        series,
        x=tuple(series.x[part[-1]] for part in parts),
        y=mean(series.y),
        low=mean(series.low),
        high=mean(series.high),
        notes=pick(series.notes),
        sizes=pick(series.sizes),
    )


def slug(text: str) -> str:
    """The text as part of a file name or an id: ASCII letters, digits and hyphens."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text).split()) or "x"
