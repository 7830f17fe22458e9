"""A chart as inline SVG; the page's style sheet sets its colours for light, dark and print."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from tracer.report.chart import Chart
from tracer.report.label import place_labels
from tracer.report.scale import Scale, scales, shown
from tracer.report.templates import environment


def svg(chart: Chart) -> Markup:
    """The whole chart, with its title and a description for screen readers."""
    x, y = scales(chart)
    labels = place_labels(chart, x, y) if chart.labelled else []
    template = environment().get_template("chart.svg.j2")
    return Markup(template.render(chart=chart, x=x, y=y, labels=labels, description=described(chart)))


def described(chart: Chart) -> str:
    """The chart in words: the first and last value of each series."""
    sentences = []
    for series in chart.series:
        if not series.x or series.guide:
            continue
        first, last = (shown(series.y[i], chart.y.percent) for i in (0, -1))
        at = shown(series.x[-1], chart.x.percent) if not chart.x.names else chart.x.names[int(series.x[-1])]
        if len(series.x) == 1:
            sentences.append(f"{series.name}: {last} at {at}")
        else:
            sentences.append(f"{series.name}: from {first} to {last}")
    return f"{chart.y.label} against {chart.x.label}. {'; '.join(sentences)}."


def payload(chart: Chart) -> dict[str, Any]:
    """The data from which the page shows values under the pointer."""
    (x, y), box = scales(chart), chart.box
    return {
        "box": [box.width, box.height, box.left, box.top, box.width - box.right, box.height - box.bottom],
        "x": _axis(x),
        "y": _axis(y),
        "nearest": "point" if chart.labelled or chart.diagonal else "x",
        "series": [
            {"name": s.name, "slot": s.slot, "x": list(s.x), "y": _short(s.y)}
            | ({"low": _short(s.low), "high": _short(s.high)} if s.low else {})
            | ({"notes": list(s.notes)} if s.notes else {})
            for s in chart.series
        ],
    }


def _axis(scale: Scale) -> dict[str, Any]:
    axis = scale.axis
    content = {"low": scale.low, "high": scale.high, "log": axis.log, "percent": axis.percent}
    return content | {"label": axis.label} | ({"names": list(axis.names)} if axis.names else {})


def _short(values: tuple[float | None, ...]) -> list[float | None]:
    return [None if value is None else float(f"{value:.5g}") for value in values]
