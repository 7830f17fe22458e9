"""The trade-off chart: task accuracy against retained accuracy, relative to the pretrained model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tracer.report.chart import BASE, Axis, Chart, Point, Series
from tracer.report.comparison import Group, Setting, list_data
from tracer.report.measures import Key
from tracer.report.run_data import inner, number, numeric
from tracer.report.scale import shown
from tracer.report.svg import CROWD

Keys = tuple[Key, ...]


def frontier(group: Group, name: str, retained: Keys) -> Chart | None:
    """Accuracy on the task against accuracy on `retained`, one point per setting; None where either is missing.

    `retained` are retained data or shifted test sets; for shifts, ID accuracy is drawn against their mean.
    """
    learned, finished = _learned(group, retained), group.finished
    if not learned or not retained or not finished:
        return None
    before = _starts(finished, learned, retained)
    points = {s: point for s in finished if (point := _point(s, learned, retained)) is not None}
    if len(points) >= CROWD:
        points = {
            s: replace(point, named=_unsurpassed(point, points.values())) for s, point in points.items()
        }
    paths = {s: _path(s, retained) if learned == (group.task,) else None for s in points}
    start = before[0] if len(before) == 1 else None
    guides = [paths[s] or (start and _straight_line(start, point)) for s, point in points.items()]
    shifted, tested = retained[0].shifted, learned[0].role is not None
    caption = f"Up: better on the task. Right: {'more robust to' if shifted else 'forgets less of'} "
    caption += f"{list_data(retained)}."
    if any(guides):
        meaning = "lead"
        if any(paths.values()):
            meaning = "follow the interpolated weights (WiSE-FT)"
            meaning += "" if all(paths.values()) else " where these were analysed, else just lead"
        caption += f" Thin lines {meaning} from the pretrained model."
    caption += _subset_note(finished) if any(paths.values()) else ""
    if not all(point.named for point in points.values()):
        caption += " Only settings that no other surpasses in both are named."
    return Chart(
        name=name,
        title="In distribution against under shift" if shifted else "Learned against kept",
        caption=caption,
        x=Axis(f"{'OOD' if shifted else 'kept'}: {_mean_of(retained)}", percent=True),
        y=Axis(f"ID: {_mean_of(learned)}" if tested else f"learned: accuracy on {group.name}", percent=True),
        series=(*(guide for guide in guides if guide), *before, *points.values()),
        labelled=True,
    )


def _learned(group: Group, retained: Keys) -> Keys:
    """The task; against shifts, the suite's ID sets if every setting with the shifts has them."""
    scored = [s for s in group.settings if all(key in s.measures["after"] for key in retained)]
    own = [key for key in group.keys if key.role == "id" and key.metric == "accuracy"]
    own = [key for key in own if all(key in setting.measures["after"] for setting in scored)]
    if own and any(key.role is not None for key in retained):
        return tuple(own)
    return () if group.task is None else (group.task,)


def _mean_of(keys: Keys) -> str:
    return f"{'mean ' if len(keys) > 1 else ''}accuracy on {list_data(keys)}"


def _starts(finished: list[Setting], task: Keys, retained: Keys) -> list[Series]:
    """The pretrained model, or models where the settings start from several."""
    starts: dict[tuple[str, str], str] = {}
    for setting in finished:
        y, x = setting.mean(task, "before"), setting.mean(retained, "before")
        if x is not None and y is not None:
            model = "/".join(str(setting.runs[0].experiment.get("model", "")).split("/")[-2:])
            starts.setdefault((f"{x.value:.4f}", f"{y.value:.4f}"), model)
    label = "pretrained" if len(starts) == 1 else "pretrained {}"
    return [
        Series(label.format(model), BASE, (Point(float(x), float(y)),), mark="points")
        for (x, y), model in starts.items()
    ]


def _point(setting: Setting, task: Keys, retained: Keys) -> Series | None:
    y, x = setting.mean(task), setting.mean(retained)
    if x is None or y is None:
        return None
    note = f"kept {shown(x.value, True)}, learned {shown(y.value, True)}"
    seeds = len(setting.means(retained))
    if seeds > 1:
        note += f", mean of {seeds} seeds"
    point = Point(x.value, y.value, number(y.low), number(y.high), note)
    return Series(setting.label, setting.slot, (point,), mark="points")


def _unsurpassed(series: Series, others: Iterable[Series]) -> bool:
    """Whether none of the points is as good in both and better in one; the pointer shows the names of the others."""
    x, y, *_ = series.points[0]
    points = [other.points[0][:2] for other in others]
    return not any(kept >= x and learned >= y and (kept, learned) != (x, y) for kept, learned in points)


def _straight_line(start: Series, series: Series) -> Series:
    """From the pretrained model to this setting."""
    points = (Point(*each.points[0][:2]) for each in (start, series))
    return Series(f"{series.name}, from", series.slot, tuple(points), guide=True)


def _path(setting: Setting, retained: Keys) -> Series | None:
    """Accuracies along the line between pretrained and finetuned weights, from the first run with an analysis."""
    places = [("alpha",), ("accuracy",), *(("retain", key.data) for key in retained)]
    for run in setting.finished:
        known = numeric([inner(row, *place) for place in places] for row in run.analysed("path"))
        if len(known) > 2:
            points = tuple(
                Point(sum(own) / len(own), accuracy, note=f"α = {alpha:g}") for alpha, accuracy, *own in known
            )
            return Series(f"{setting.label}, path", setting.slot, points, guide=True)
    return None


def _subset_note(finished: list[Setting]) -> str:
    """A note where a path was measured on a subset of the held-out images: its ends then differ from the points."""
    for run in (run for setting in finished for run in setting.finished):
        count, total = number(run.analysis.get("samples")), run.data.get("held_out", 0)
        if count is not None and count < total and run.analysis.get("path"):
            return f" Paths were measured on {count:g} of {total:g} held-out images."
    return ""
