"""A chart as SVG, on the page and as a file; its style sheet sets the colours for light, dark and print.

The names of points are placed so that they cover neither points nor each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from tracer.report.chart import Chart, Series
from tracer.report.scale import Scale, scales, shown
from tracer.report.templates import CONTROLS, HERE, cut, environment
from tracer.storage.atomic import write_text

LETTER, LINE = 11.0, 19.0  # size of the font on a phone, where it is largest, in the chart's units
CROWD = 10  # points; beyond that not every one gets its name


def svg(chart: Chart) -> Markup:
    """The whole chart, with its title and a description for screen readers."""
    x, y = scales(chart)
    labels = place_labels(chart, x, y) if chart.labelled else []
    template = environment().get_template("chart.svg.j2")
    return Markup(template.render(chart=chart, x=x, y=y, labels=labels, description=described(chart)))


def write_figures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each chart as SVG, and its data as CSV, named by its id on the page; returns the files."""
    files = [folder / f"{chart.name}.{kind}" for chart in charts for kind in ("svg", "csv")]
    for chart in charts:
        write_text(folder / f"{chart.name}.svg", figure(chart))
        write_text(folder / f"{chart.name}.csv", chart.csv())
    return files


def figure(chart: Chart) -> str:
    """The chart as an SVG document of its own; equal charts give equal documents."""
    box, legend = chart.box, [series for series in chart.series if not series.guide]
    if chart.labelled or len(legend) == 1:
        legend = []
    below = box.height + 44
    text = (
        environment()
        .get_template("figure.svg.j2")
        .render(
            chart=chart,
            drawn=svg(chart),
            legend=legend,
            below=below,
            width=box.width + 24,
            height=below + 18 * len(legend),
            style=Markup((HERE / "chart.css").read_text(encoding="utf-8")),
        )
    )
    return text.translate(CONTROLS)


def described(chart: Chart) -> str:
    """The chart in words: the first and last value of each series."""
    sentences = []
    for series in chart.series:
        if series.guide:
            continue
        first, last = (shown(series.points[i].y, chart.y.percent) for i in (0, -1))
        x = series.points[-1].x
        at = chart.x.names[int(x)] if chart.x.names else shown(x, chart.x.percent)
        values = f"{last} at {at}" if len(series.points) == 1 else f"from {first} to {last}"
        sentences.append(f"{series.name}: {values}")
    return f"{chart.y.label} against {chart.x.label}. {'; '.join(sentences)}."


def payload(chart: Chart) -> dict[str, Any]:
    """The data from which the page shows values under the pointer."""
    (x, y), box = scales(chart), chart.box
    return {
        "box": [box.width, box.height, box.left, box.top, box.width - box.right, box.height - box.bottom],
        "x": _axis(x),
        "y": _axis(y),
        "nearest": "point" if chart.labelled or chart.diagonal else "x",
        "series": [_series(series) for series in chart.series],
    }


def _series(series: Series) -> dict[str, Any]:
    """Coordinates, and intervals and notes where there are any."""
    x, y, low, high, notes, _ = map(list, zip(*series.points, strict=True))
    content = {"name": series.name, "slot": series.slot, "x": x, "y": _short(y)}
    content |= {"low": _short(low), "high": _short(high)} if series.intervals else {}
    return content | ({"notes": notes} if any(notes) else {})


def _axis(scale: Scale) -> dict[str, Any]:
    axis = scale.axis
    content = {"low": scale.low, "high": scale.high, "log": axis.log, "percent": axis.percent}
    return content | {"label": axis.label} | ({"names": list(axis.names)} if axis.names else {})


def _short(values: list[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.5g}") for value in values]


class Label(NamedTuple):
    """The name of a series and its position; `anchor` is as in SVG."""

    series: Series
    x: float
    y: float
    anchor: str


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
    ends = [(series, series.points[-1]) for series in chart.series if not series.guide]
    points = [(series, x(end.x), y(end.y)) for series, end in ends]
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
