"""The trade-off chart: task accuracy against retained accuracy, relative to the pretrained model."""

from __future__ import annotations

from dataclasses import replace

from tracer.report.chart import BASE, Axis, Chart, Series
from tracer.report.comparison import Group, Setting, list_data
from tracer.report.label import CROWD
from tracer.report.measures import Key
from tracer.report.run_data import number
from tracer.report.scale import shown

Keys = tuple[Key, ...]


def frontier(group: Group, name: str, retained: Keys) -> Chart | None:
    """Accuracy on the task against accuracy on `retained`, one point per setting; None where either is missing.

    `retained` are retained data or shifted test sets; for shifts, ID accuracy is drawn against their mean.
    """
    learned = _learned(group, retained)
    finished = group.finished
    if not learned or not retained or not finished:
        return None
    before = _starts(finished, learned, retained)
    points = _name_best({setting: _point(setting, learned, retained) for setting in finished})
    paths = {setting: _path(setting, retained) if learned == (group.task,) else None for setting in finished}
    guides = [paths[setting] or _straight_line(before, point) for setting, point in points.items()]
    meaning = "lead"
    if any(paths.values()):
        meaning = "follow the interpolated weights (WiSE-FT) where these were analysed, else just lead"
    if all(paths.values()):
        meaning = "follow the interpolated weights (WiSE-FT)"
    crowded = not all(point.named for point in points.values() if point)
    shifted = retained[0].shifted
    direction = "more robust to" if shifted else "forgets less of"
    lines = f" Thin lines {meaning} from the pretrained model." if any(guides) else ""
    return Chart(
        name=name,
        title="In distribution against under shift" if shifted else "Learned against kept",
        caption=f"Up: better on the task. Right: {direction} {list_data(retained)}."
        f"{lines}{_subset_note(finished) if any(paths.values()) else ''}"
        f"{' Only settings that no other surpasses in both are named.' if crowded else ''}",
        x=Axis(f"{'OOD' if shifted else 'kept'}: {_mean_of(retained)}", percent=True),
        y=Axis(f"{'ID' if learned[0].suite else 'learned'}: {_accuracy(group, learned)}", percent=True),
        series=tuple(part for part in (*guides, *before, *points.values()) if part is not None),
        labelled=True,
    )


def _learned(group: Group, retained: Keys) -> Keys:
    """The task; against shifts, the suite's ID sets if every setting with the shifts has them."""
    scored = [s for s in group.settings if all(key in s.measures["after"] for key in retained)]
    own = [key for key in group.keys if key.role == "id" and key.metric == "accuracy"]
    own = [key for key in own if all(key in setting.measures["after"] for setting in scored)]
    if own and any(key.suite for key in retained):
        return tuple(own)
    return () if group.task is None else (group.task,)


def _mean_of(keys: Keys) -> str:
    return f"{'mean ' if len(keys) > 1 else ''}accuracy on {list_data(keys)}"


def _accuracy(group: Group, learned: Keys) -> str:
    return _mean_of(learned) if learned[0].suite else f"accuracy on {group.name}"


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
        Series(label.format(model), BASE, (float(x),), (float(y),), mark="points")
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
    return Series(
        setting.label,
        setting.slot,
        (x.value,),
        (y.value,),
        (number(y.low),),
        (number(y.high),),
        (note,),
        mark="points",
    )


def _name_best(points: dict[Setting, Series | None]) -> dict[Setting, Series | None]:
    """Of many points only those are named that no other surpasses in both; the pointer shows the other names."""
    known = [point for point in points.values() if point is not None]
    if len(known) < CROWD:
        return points

    def surpassed(point: Series) -> bool:
        (x,), (y,) = point.x, point.y
        return any(o.x[0] >= x and o.y[0] >= y and (o.x[0], o.y[0]) != (x, y) for o in known)

    return {s: point and replace(point, named=not surpassed(point)) for s, point in points.items()}


def _straight_line(before: list[Series], point: Series | None) -> Series | None:
    """From the pretrained model to this setting."""
    if point is None or len(before) != 1:
        return None
    (start,) = before
    return Series(f"{point.name}, from", point.slot, start.x + point.x, start.y + point.y, guide=True)


def _path(setting: Setting, retained: Keys) -> Series | None:
    """Accuracies along the line between pretrained and finetuned weights, from the first run with an analysis."""
    for run in setting.finished:
        rows = run.analysis.get("path")
        if not isinstance(rows, list):
            continue
        points = [_path_point(row, retained) for row in rows if isinstance(row, dict)]
        known = [point for point in points if point is not None]
        if len(known) > 2:
            alphas, x, y = zip(*known, strict=True)
            notes = tuple(f"α = {alpha:g}" for alpha in alphas)
            return Series(f"{setting.label}, path", setting.slot, x, y, notes=notes, guide=True)
    return None


def _subset_note(finished: list[Setting]) -> str:
    """A note where a path was measured on a subset of the held-out images: its ends then differ from the points."""
    for run in (run for setting in finished for run in setting.finished):
        count, total = number(run.analysis.get("samples")), number(run.data.get("held_out"))
        if count is not None and total is not None and count < total and run.analysis.get("path"):
            return f" Paths were measured on {count:g} of {total:g} held-out images."
    return ""


def _path_point(row: dict, retained: Keys) -> tuple[float, float, float] | None:
    """α, mean retained accuracy and task accuracy."""
    try:
        scores = [float(row["retain"][key.data]) for key in retained]
        return float(row["alpha"]), sum(scores) / len(scores), float(row["accuracy"])
    except (KeyError, TypeError, ValueError):
        return None
