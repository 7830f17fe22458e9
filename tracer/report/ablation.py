"""The effect of one hyper-parameter: task, retained accuracy and calibration against its value."""

from __future__ import annotations

from tracer.core.metrics import Interval
from tracer.report.chart import Axis, Chart, Series, slug
from tracer.report.comparison import Group, Setting, show, varied
from tracer.report.measures import Key
from tracer.report.run_data import number

MIN_VALUES = 3  # of a curve
MAX_CURVES = 8  # in one chart


def ablations(group: Group, prefix: str) -> list[Chart]:
    """Charts of task, retained accuracy and calibration against each hyper-parameter with three values or more."""
    charts = []
    for title in dict.fromkeys(setting.runs[0].title for setting in group.finished):
        alike = [setting for setting in group.finished if setting.runs[0].title == title]
        names = varied(setting.runs[0] for setting in alike)
        for name in names:
            curves = _curves(alike, name, [other for other in names if other != name])
            if curves:
                charts += _charts(group, f"{prefix}-{slug(title)}-{slug(name)}", title, name, curves)
    return charts


def _curves(settings: list[Setting], name: str, others: list[str]) -> dict[str, list[tuple[float, Setting]]]:
    """Settings by the values of `others`, each list ordered by the value of `name`."""
    curves: dict[str, list[tuple[float, Setting]]] = {}
    for setting in settings:
        settled = setting.runs[0].settled
        at = number(settled.get(name))
        if at is not None:
            label = ", ".join(f"{other.replace('_', ' ')} {show(settled.get(other))}" for other in others)
            curves.setdefault(label, []).append((at, setting))
    full = {label: sorted(points, key=lambda point: point[0]) for label, points in curves.items()}
    full = {label: points for label, points in full.items() if len({at for at, _ in points}) >= MIN_VALUES}
    return full if 0 < len(full) <= MAX_CURVES else {}


def _charts(
    group: Group, prefix: str, title: str, name: str, curves: dict[str, list[tuple[float, Setting]]]
) -> list[Chart]:
    values = [at for points in curves.values() for at, _ in points]
    log = min(values) > 0 and max(values) / min(values) > 20
    axis = Axis(name.replace("_", " "), log=log)
    charts = []
    for key in [key for key in (group.task, *group.retained, *_calibration(group)) if key]:
        series = []
        for slot, (label, points) in enumerate(curves.items()):
            known = [(at, e) for at, setting in points if (e := setting.estimate(key)) is not None]
            over_seeds = any(setting.seeds(key) > 1 for _, setting in points)
            if known:
                series.append(_series(label or title, slot, known, over_seeds))
        if series:
            seeds = max(len(setting.finished) for points in curves.values() for _, setting in points)
            caption = (f"{title}. " if list(curves) == [""] else "") + (
                f"Mean and 95 % interval over {seeds} seeds."
                if seeds > 1
                else "One seed: differences may be chance."
            )
            y = Axis(key.label, percent=key.percent)
            heading = f"{key.label[0].upper()}{key.label[1:]} by {axis.label}"
            file = f"{prefix}-{slug('-'.join(key.path))}"
            charts.append(Chart(file, heading, caption, axis, y, tuple(series), own_legend=True))
    return charts


def _calibration(group: Group) -> list[Key]:
    return [key for key in group.keys if key.metric == "ece" and key.path[0] != "retain"][:1]


def _series(name: str, slot: int, known: list[tuple[float, Interval]], over_seeds: bool) -> Series:
    """Points along the values; intervals are drawn only where they are over seeds."""
    return Series(
        name,
        slot,
        tuple(at for at, _ in known),
        tuple(estimate.value for _, estimate in known),
        tuple(number(estimate.low) for _, estimate in known) if over_seeds else (),
        tuple(number(estimate.high) for _, estimate in known) if over_seeds else (),
        mark="both",
    )
