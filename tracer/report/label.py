"""Place the names of points so that they cover neither points nor each other."""

from __future__ import annotations

from typing import NamedTuple

from tracer.report.chart import Chart, Series
from tracer.report.scale import Scale

LETTER, LINE = 11.0, 19.0  # size of the font on a phone, where it is largest, in the chart's units
CROWD = 10  # points; beyond that not every one gets its name
MAX_LENGTH = 30  # of a name beside a point; legend, table and tooltip show it in full


class Label(NamedTuple):
    """The name of a series and its position; `anchor` is as in SVG."""

    series: Series
    x: float
    y: float
    anchor: str


def cut(text: str, most: float = MAX_LENGTH) -> str:
    """The text, shortened to `most` letters."""
    return text if len(text) <= most else f"{text[: int(most) - 1]}…"


class Area(NamedTuple):
    """A rectangle of the chart."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def size(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    def overlap(self, other: Area) -> float:
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)


def place_labels(chart: Chart, x: Scale, y: Scale) -> list[Label]:
    """A label for each named point where it overlaps least; in a crowd only those with little overlap."""
    points = [(s, x(s.x[-1]), y(s.y[-1])) for s in chart.series if s.x and not s.guide]
    occupied = [Area(left - 6, top - 6, left + 6, top + 6) for _, left, top in points]
    occupied += [
        Area(x(at) - 2, y(high), x(at) + 2, y(low))
        for series, _, _ in points
        for at, low, high in series.intervals
    ]
    plot = Area(0, 14, chart.box.width, chart.box.height - chart.box.bottom)
    labels = []
    crowded = len(points) > CROWD
    for series, left, top in sorted(points, key=lambda point: (point[2], -point[1])):
        candidates = _candidates(series, left, top)
        cost, best = min(
            (_cost(area, occupied, plot) + 0.01 * i, i) for i, (_, area) in enumerate(candidates)
        )
        label, area = candidates[best]
        if series.named and not (crowded and cost > 0.1 * area.size):
            labels.append(label)
            occupied.append(area)
    return labels


def _candidates(series: Series, left: float, top: float) -> list[tuple[Label, Area]]:
    """Labels to the right, to the left, below and above, then further away."""
    width = LETTER * len(cut(series.name))
    candidates = []
    for down in (0.0, LINE + 3, -LINE - 3, 2 * LINE + 4, -2 * LINE - 4, 3 * LINE + 5):
        for anchor, shift in (("start", 10.0), ("end", -10.0), ("middle", 0.0)):
            if anchor == "middle" and not down:
                continue
            start = left + shift - {"start": 0.0, "end": width, "middle": width / 2}[anchor]
            middle = top + down
            area = Area(start, middle - LINE / 2, start + width, middle + LINE / 2)
            candidates.append((Label(series, left + shift, middle + 4, anchor), area))
    return candidates


def _cost(area: Area, occupied: list[Area], plot: Area) -> float:
    """The area that overlaps others, plus three times the area outside the plot."""
    outside = area.size - area.overlap(plot)
    return sum(area.overlap(other) for other in occupied) + 3 * outside
