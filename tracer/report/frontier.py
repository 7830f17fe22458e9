"""The picture of the trade: what was learned against what was kept, from the pretrained model on."""

from __future__ import annotations

from dataclasses import replace

from tracer.report.account import number
from tracer.report.chart import BASE, Axis, Chart, Series
from tracer.report.comparison import Group, Setting
from tracer.report.label import CROWD
from tracer.report.measures import Key
from tracer.report.scale import shown


def frontier(group: Group, name: str) -> Chart | None:
    """Task accuracy against retained accuracy, one point a setting; None where either was not measured."""
    task, kept = group.task, group.kept
    done = [setting for setting in group.settings if setting.finished]
    if task is None or not kept or not done:
        return None
    before = _starts(done, task, kept)
    points = _unobscured({setting: _point(setting, task, kept) for setting in done})
    paths = {setting: _path(setting, kept) for setting in done}
    rays = [paths[setting] or _ray(before, point) for setting, point in points.items()]
    told = "lead"
    if any(paths.values()):
        told = "follow the straight path in weight space (WiSE-FT) where it was analysed, else just lead"
    if all(paths.values()):
        told = "follow the straight path in weight space (WiSE-FT)"
    crowded = not all(point.named for point in points.values() if point)
    return Chart(
        name=name,
        title="Learned against kept",
        caption=f"Up: a better task. Right: a better memory of {group.kept_name}. "
        f"Thin lines {told} from the pretrained model.{_fewer(done)}"
        f"{' Named are those that none surpasses in both.' if crowded else ''}",
        x=Axis(f"kept: {'mean ' if len(kept) > 1 else ''}accuracy on {group.kept_name}", percent=True),
        y=Axis(f"learned: accuracy on {group.name}", percent=True),
        series=tuple(part for part in (*rays, *before, *points.values()) if part is not None),
        labelled=True,
    )


def _starts(done: list[Setting], task: Key, kept: tuple[Key, ...]) -> list[Series]:
    """The pretrained model, or models where the settings start from several."""
    starts: dict[tuple[str, str], str] = {}
    for setting in done:
        learned, remembered = setting.estimate(task, "before"), setting.kept(kept, "before")
        if learned is not None and remembered is not None:
            model = "/".join(str(setting.runs[0].experiment.get("model", "")).split("/")[-2:])
            starts.setdefault((f"{remembered.value:.4f}", f"{learned.value:.4f}"), model)
    label = "pretrained" if len(starts) == 1 else "pretrained {}"
    return [
        Series(label.format(model), BASE, (float(x),), (float(y),), mark="points")
        for (x, y), model in starts.items()
    ]


def _point(setting: Setting, task: Key, kept: tuple[Key, ...]) -> Series | None:
    learned, remembered = setting.estimate(task), setting.kept(kept)
    if learned is None or remembered is None:
        return None
    note = f"kept {shown(remembered.value, True)}, learned {shown(learned.value, True)}"
    if remembered.seeds > 1:
        note += f", mean of {remembered.seeds} seeds"
    return Series(
        setting.label,
        setting.slot,
        (remembered.value,),
        (learned.value,),
        (learned.low,),
        (learned.high,),
        (note,),
        mark="points",
    )


def _unobscured(points: dict[Setting, Series | None]) -> dict[Setting, Series | None]:
    """In a crowd only those are named that no other setting surpasses in both; the pointer names the rest."""
    known = [point for point in points.values() if point is not None]
    if len(known) < CROWD:
        return points

    def surpassed(point: Series) -> bool:
        (x,), (y,) = point.x, point.y
        return any(o.x[0] >= x and o.y[0] >= y and (o.x[0], o.y[0]) != (x, y) for o in known)

    return {s: point and replace(point, named=not surpassed(point)) for s, point in points.items()}


def _ray(before: list[Series], point: Series | None) -> Series | None:
    """From where all began to where this setting ended."""
    if point is None or len(before) != 1:
        return None
    (start,) = before
    return Series(f"{point.name}, from", point.slot, start.x + point.x, start.y + point.y, guide=True)


def _path(setting: Setting, kept: tuple[Key, ...]) -> Series | None:
    """Accuracies along the line between pretrained and finetuned weights, where an analysis has walked it."""
    for run in setting.finished:
        walked = (run.analysis or {}).get("path")
        if not isinstance(walked, list):
            continue
        points = [_stop(stop, kept) for stop in walked if isinstance(stop, dict)]
        found = [point for point in points if point is not None]
        if len(found) > 2:
            alphas, x, y = zip(*found, strict=True)
            notes = tuple(f"α = {alpha:g}" for alpha in alphas)
            return Series(f"{setting.label}, path", setting.slot, x, y, notes=notes, guide=True)
    return None


def _fewer(done: list[Setting]) -> str:
    """Said where a path was measured on a part of the held-out images: its ends then miss the points a little."""
    for run in (run for setting in done for run in setting.finished):
        seen, all_ = number((run.analysis or {}).get("samples")), number(run.data.get("held_out"))
        if seen is not None and all_ is not None and seen < all_ and (run.analysis or {}).get("path"):
            return f" Paths were measured on {seen:g} of {all_:g} held-out images."
    return ""


def _stop(stop: dict, kept: tuple[Key, ...]) -> tuple[float, float, float] | None:
    try:
        remembered = [float(stop["retain"][key.path[1]]) for key in kept]
        return float(stop["alpha"]), sum(remembered) / len(remembered), float(stop["accuracy"])
    except (KeyError, TypeError, ValueError):
        return None
