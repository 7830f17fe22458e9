"""The effect of one hyper-parameter: task, retained accuracy and calibration against its value."""

from __future__ import annotations

from tracer.report.chart import Axis, Chart, Point, Series, slug
from tracer.report.comparison import Group, Setting, show, varied
from tracer.report.measures import Key
from tracer.report.run_data import number

MIN_VALUES = 3  # of a curve
MAX_CURVES = 8  # in one chart

Curves = dict[str, list[tuple[float, Setting]]]


def ablations(group: Group) -> list[Chart]:
    """Charts of task, retained accuracy and calibration against each hyper-parameter with three values or more."""
    charts = []
    for title in dict.fromkeys(setting.runs[0].title for setting in group.finished):
        alike = [setting for setting in group.finished if setting.runs[0].title == title]
        names = varied(setting.runs[0] for setting in alike)
        for name in names:
            curves = _curves(alike, name, [other for other in names if other != name])
            if curves:
                charts += _charts(group, title, name, curves)
    return charts


def _curves(settings: list[Setting], name: str, others: list[str]) -> Curves:
    """Settings by the values of `others`, each list ordered by the value of `name`."""
    curves: Curves = {}
    for setting in settings:
        settled = setting.runs[0].settled
        at = number(settled.get(name))
        if at is not None:
            label = ", ".join(f"{other.replace('_', ' ')} {show(settled.get(other))}" for other in others)
            curves.setdefault(label, []).append((at, setting))
    full = {label: sorted(points, key=lambda point: point[0]) for label, points in curves.items()}
    full = {label: points for label, points in full.items() if len({at for at, _ in points}) >= MIN_VALUES}
    return full if 0 < len(full) <= MAX_CURVES else {}


def _charts(group: Group, title: str, name: str, curves: Curves) -> list[Chart]:
    places = [at for points in curves.values() for at, _ in points]
    axis = Axis(name.replace("_", " "), log=min(places) > 0 and max(places) / min(places) > 20)
    seeds = max(len(setting.finished) for points in curves.values() for _, setting in points)
    caption = f"Mean and 95 % interval over {seeds} seeds."
    if seeds == 1:
        caption = "One seed: differences may be chance."
    if list(curves) == [""]:
        caption = f"{title}. {caption}"
    calibration = [key for key in group.keys if key.metric == "ece" and key.path[0] != "retain"][:1]
    charts = []
    for key in [key for key in (group.task, *group.retained, *calibration) if key]:
        each = (_series(name or title, i, points, key) for i, (name, points) in enumerate(curves.items()))
        series = tuple(part for part in each if part is not None)
        if series:
            y = Axis(key.label, percent=key.percent)
            heading = f"{key.label[0].upper()}{key.label[1:]} by {axis.label}"
            file = "-".join(map(slug, (title, name, "-".join(key.path))))
            charts.append(Chart(file, heading, caption, axis, y, series, own_legend=True))
    return charts


def _series(name: str, slot: int, points: list[tuple[float, Setting]], key: Key) -> Series | None:
    """The measure along the values; intervals are drawn only where they are over seeds."""
    over_seeds = any(setting.seeds(key) > 1 for _, setting in points)
    known = ((at, estimate) for at, setting in points if (estimate := setting.estimate(key)) is not None)
    places = tuple(
        Point(at, value, number(low) if over_seeds else None, number(high) if over_seeds else None)
        for at, (low, value, high) in known
    )
    return Series(name, slot, places, mark="both") if places else None
