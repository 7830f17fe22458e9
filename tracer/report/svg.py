"""A chart as inline SVG; the page's style sheet sets its colours for light, dark and print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from tracer.report.box import Box
from tracer.report.chart import Chart, Series
from tracer.report.label import Label, cut, place_labels
from tracer.report.scale import Scale, shown

COLOURS, DASHES = 8, 3  # as in the style sheet


def svg(chart: Chart, box: Box) -> Markup:
    """The whole chart, with its title and a description for screen readers."""
    x, y = box.scales(chart)
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-labelledby="{}-t {}-d">').format(
            box.width, box.height, chart.name, chart.name
        ),
        Markup('<title id="{}-t">{}</title>').format(chart.name, chart.title),
        Markup('<desc id="{}-d">{}</desc>').format(chart.name, described(chart)),
        *_frame(chart, box, x, y),
    ]
    for series in chart.series:
        parts += [
            Markup('<g class="{}" data-slot="{}">').format(_classes(series), series.slot),
            *_band(series, x, y),
            *_line(series, x, y),
            *_points(series, x, y),
            Markup("</g>"),
        ]
    if chart.labelled:
        parts += [_name(label) for label in place_labels(chart, box, x, y)]
    parts.append(
        Markup('<line class="cursor" y1="{}" y2="{}"/></svg>').format(box.top, box.height - box.bottom)
    )
    return Markup("").join(parts)


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


def payload(chart: Chart, box: Box) -> dict[str, Any]:
    """The data from which the page shows values under the pointer."""
    x, y = box.scales(chart)
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
    content = {
        "low": scale.low,
        "high": scale.high,
        "log": axis.log,
        "percent": axis.percent,
        "label": axis.label,
    }
    return content | ({"names": list(axis.names)} if axis.names else {})


def _short(values: tuple[float | None, ...]) -> list[float | None]:
    return [None if value is None else float(f"{value:.5g}") for value in values]


def _classes(series: Series) -> str:
    own = f"s{series.slot % COLOURS} d{series.slot // COLOURS % DASHES}"
    colour = "base" if series.slot < 0 else own
    return f"series {colour}{' guide' if series.guide else ''}"


def _frame(chart: Chart, box: Box, x: Scale, y: Scale) -> Iterator[Markup]:
    right, bottom = box.width - box.right, box.height - box.bottom
    for at, text in y.ticks():
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
            box.left, right, at, at
        )
        yield Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
            box.left - 6, at + 4, text
        )
    for at, text in x.ticks():
        yield Markup('<line class="stub" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(
            at, at, bottom, bottom + 4
        )
        yield Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            at, bottom + 16, cut(text, 11)
        )
    yield Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        box.left, right, bottom, bottom
    )
    unit, letters = {True: ", %", False: ""}, box.width / 7.4 - 4
    yield Markup('<text class="label" x="{}" y="{}">{}</text>').format(
        4, 12, cut(chart.y.label, letters) + unit[chart.y.percent]
    )
    yield Markup('<text class="label" x="{}" y="{}" text-anchor="end">{}</text>').format(
        right, box.height - 6, cut(chart.x.label, letters) + unit[chart.x.percent]
    )
    if chart.diagonal:
        yield Markup('<line class="diagonal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
            x(0), y(0), x(1), y(1)
        )


def _band(series: Series, x: Scale, y: Scale) -> Iterator[Markup]:
    """Intervals: a band around a line, a bar through each point otherwise."""
    ends = [
        (at, low, high)
        for at, low, high in zip(series.x, series.low, series.high, strict=bool(series.low))
        if low is not None and high is not None
    ]
    if series.mark == "line" and len(ends) > 1:
        upper = [f"{x(at):.1f},{y(high):.1f}" for at, _, high in ends]
        lower = [f"{x(at):.1f},{y(low):.1f}" for at, low, _ in reversed(ends)]
        yield Markup('<polygon class="band" points="{}"/>').format(" ".join(upper + lower))
        return
    for at, low, high in ends:
        yield Markup('<line class="whisker" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
            x(at), x(at), y(low), y(high)
        )


def _line(series: Series, x: Scale, y: Scale) -> Iterator[Markup]:
    if series.mark != "points" and len(series.x) > 1:
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(series.x, series.y, strict=True))
        yield Markup('<polyline points="{}"/>').format(points)


def _points(series: Series, x: Scale, y: Scale) -> Iterator[Markup]:
    if series.mark == "line" and len(series.x) > 1:
        return
    sizes = series.sizes or (1.0,) * len(series.x)
    usual = 3.5 if series.mark == "both" else 5.0
    for a, b, size in zip(series.x, series.y, sizes, strict=True):
        yield Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>').format(x(a), y(b), usual * size)


def _name(label: Label) -> Markup:
    text = '<text class="name {}" data-slot="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
    series = label.series
    return Markup(text).format(
        _classes(series), series.slot, label.x, label.y, label.anchor, cut(series.name)
    )
