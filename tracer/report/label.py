"""Names beside points, set where they cover neither a point nor each other."""

from __future__ import annotations

from typing import NamedTuple

from tracer.report.box import Box
from tracer.report.chart import Chart, Series
from tracer.report.scale import Scale

LETTER, LINE = 11.0, 19.0  # of the font as it is on a phone, the largest, in the picture's units
CROWD = 10  # points among which not every one can have its name beside it
LONGEST = 30  # letters of a name; the legend, the table and the values under the pointer have it whole


class Label(NamedTuple):
    """A name and where it begins, ends or has its middle."""

    series: Series
    x: float
    y: float
    anchor: str


def cut(text: str, most: float = LONGEST) -> str:
    """As much of a text as there is room for."""
    return text if len(text) <= most else f"{text[: int(most) - 1]}…"


class Area(NamedTuple):
    """A rectangle of the page."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def size(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    def overlap(self, other: Area) -> float:
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, wide) * max(0.0, high)


def place_labels(chart: Chart, box: Box, x: Scale, y: Scale) -> list[Label]:
    """For each point the first place around it that covers least of what is there already, if that is little."""
    points = [(s, x(s.x[-1]), y(s.y[-1])) for s in chart.series if s.x and not s.guide]
    taken = [Area(left - 6, top - 6, left + 6, top + 6) for _, left, top in points]
    taken += [
        Area(left - 2, y(high), left + 2, y(low))
        for series, left, _ in points
        for low, high in zip(series.low, series.high, strict=True)
        if low is not None and high is not None
    ]
    picture = Area(0, 14, box.width, box.height - box.bottom)
    labels = []
    crowd = len(points) > CROWD
    for series, left, top in sorted(points, key=lambda point: (point[2], -point[1])):
        places = _places(series, left, top)
        cost, best = min((_cost(area, taken, picture) + 0.01 * i, i) for i, (_, area) in enumerate(places))
        label, area = places[best]
        if series.named and not (crowd and cost > 0.1 * area.size):
            labels.append(label)
            taken.append(area)
    return labels


def _places(series: Series, left: float, top: float) -> list[tuple[Label, Area]]:
    """Right, left, below, above, then further away."""
    width = LETTER * len(cut(series.name))
    found = []
    for down in (0.0, LINE + 3, -LINE - 3, 2 * LINE + 4, -2 * LINE - 4, 3 * LINE + 5):
        for anchor, shift in (("start", 10.0), ("end", -10.0), ("middle", 0.0)):
            if anchor == "middle" and not down:
                continue
            start = left + shift - {"start": 0.0, "end": width, "middle": width / 2}[anchor]
            middle = top + down
            area = Area(start, middle - LINE / 2, start + width, middle + LINE / 2)
            found.append((Label(series, left + shift, middle + 4, anchor), area))
    return found


def _cost(area: Area, taken: list[Area], picture: Area) -> float:
    """What it would cover, and what would hang out of the picture."""
    inside = area.overlap(picture)
    outside = area.size - inside
    return sum(area.overlap(other) for other in taken) + 3 * outside
