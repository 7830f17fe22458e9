"""What one setting does: task and memory against its value, with every seed and the interval over seeds."""

from __future__ import annotations

from tracer.report.chart import Axis, Chart, Series, slug
from tracer.report.comparison import Group, Setting, show, varied
from tracer.report.measures import Key
from tracer.report.number import number
from tracer.report.spread import Estimate

FEWEST = 3  # values that make a curve
MOST = 8  # curves in one picture


def ablations(group: Group, prefix: str) -> list[Chart]:
    """A chart for each numeric setting with three values or more: task, memory, calibration."""
    charts = []
    done = [setting for setting in group.settings if setting.finished]
    for title in dict.fromkeys(setting.runs[0].title for setting in done):
        alike = [setting for setting in done if setting.runs[0].title == title]
        names = varied(setting.runs[0] for setting in alike)
        for name in names:
            curves = _curves(alike, name, [other for other in names if other != name])
            if curves:
                charts += _charts(group, f"{prefix}-{slug(title)}-{slug(name)}", title, name, curves)
    return charts


def _curves(settings: list[Setting], name: str, others: list[str]) -> dict[str, list[tuple[float, Setting]]]:
    """Settings by what else tells them apart, each list along the values of `name`."""
    curves: dict[str, list[tuple[float, Setting]]] = {}
    for setting in settings:
        settled = setting.runs[0].settled
        at = number(settled.get(name))
        if at is not None:
            told = ", ".join(f"{other.replace('_', ' ')} {show(settled.get(other))}" for other in others)
            curves.setdefault(told, []).append((at, setting))
    full = {told: sorted(points, key=lambda point: point[0]) for told, points in curves.items()}
    full = {told: points for told, points in full.items() if len({at for at, _ in points}) >= FEWEST}
    return full if 0 < len(full) <= MOST else {}


def _charts(
    group: Group, prefix: str, title: str, name: str, curves: dict[str, list[tuple[float, Setting]]]
) -> list[Chart]:
    values = [at for points in curves.values() for at, _ in points]
    log = min(values) > 0 and max(values) / min(values) > 20
    axis = Axis(name.replace("_", " "), log=log)
    charts = []
    for key in [key for key in (group.task, *group.kept, *_calibration(group)) if key]:
        series = []
        for slot, (told, points) in enumerate(curves.items()):
            known = [(at, e) for at, setting in points if (e := setting.estimate(key)) is not None]
            if known:
                series.append(_series(told or title, slot, known))
        if series:
            seeds = max(len(setting.finished) for points in curves.values() for _, setting in points)
            caption = (f"{title}. " if list(curves) == [""] else "") + (
                f"Mean and 95 % interval over {seeds} seeds."
                if seeds > 1
                else "One seed: differences may be chance."
            )
            y = Axis(key.label, percent=key.percent)
            about = f"{key.label[0].upper()}{key.label[1:]} by {axis.label}"
            where = f"{prefix}-{slug('-'.join(key.path))}"
            charts.append(Chart(where, about, caption, axis, y, tuple(series), own_legend=True))
    return charts


def _calibration(group: Group) -> list[Key]:
    return [key for key in group.keys if key.metric == "ece" and key.path[0] != "retain"][:1]


def _series(name: str, slot: int, known: list[tuple[float, Estimate]]) -> Series:
    ends = any(estimate.seeds > 1 for _, estimate in known)
    return Series(
        name,
        slot,
        tuple(at for at, _ in known),
        tuple(estimate.value for _, estimate in known),
        tuple(estimate.low for _, estimate in known) if ends else (),
        tuple(estimate.high for _, estimate in known) if ends else (),
        mark="both",
    )
