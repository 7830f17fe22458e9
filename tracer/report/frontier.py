"""The picture of the trade: what was learned against what was kept, from the pretrained model on."""

from __future__ import annotations

from dataclasses import replace

from tracer.report.chart import BASE, Axis, Chart, Series
from tracer.report.comparison import Group, Setting, spoken
from tracer.report.label import CROWD
from tracer.report.measures import SUITE, Key
from tracer.report.number import number
from tracer.report.scale import shown
from tracer.report.scored import Moment
from tracer.report.spread import Estimate

Keys = tuple[Key, ...]


def frontier(group: Group, name: str, kept: Keys) -> Chart | None:
    """Accuracy learned against accuracy kept, one point a setting; None where either was not measured.

    What was kept are retained data, or shifts of the task: then ID accuracy stands against their mean.
    """
    learned = _learned(group, kept)
    done = [setting for setting in group.settings if setting.finished]
    if not learned or not kept or not done:
        return None
    before = _starts(done, learned, kept)
    points = _unobscured({setting: _point(setting, learned, kept) for setting in done})
    paths = {setting: _path(setting, kept) if learned == (group.task,) else None for setting in done}
    rays = [paths[setting] or _ray(before, point) for setting, point in points.items()]
    told = "lead"
    if any(paths.values()):
        told = "follow the straight path in weight space (WiSE-FT) where it was analysed, else just lead"
    if all(paths.values()):
        told = "follow the straight path in weight space (WiSE-FT)"
    crowded = not all(point.named for point in points.values() if point)
    shifted = kept[0].suite
    lines = f" Thin lines {told} from the pretrained model." if any(rays) else ""
    return Chart(
        name=name,
        title="In distribution against under shift" if shifted else "Learned against kept",
        caption=f"Up: a better task. Right: {'more robust to' if shifted else 'a better memory of'} {spoken(kept)}."
        f"{lines}{_fewer(done) if any(paths.values()) else ''}"
        f"{' Named are those that none surpasses in both.' if crowded else ''}",
        x=Axis(f"{'OOD' if shifted else 'kept'}: {_mean_of(kept)}", percent=True),
        y=Axis(f"{'ID' if learned[0].suite else 'learned'}: {_accuracy(group, learned)}", percent=True),
        series=tuple(part for part in (*rays, *before, *points.values()) if part is not None),
        labelled=True,
    )


def _learned(group: Group, kept: Keys) -> Keys:
    """The task; beside shifts, the suite's own ID sets where every setting that has the shifts has them."""
    scored = [s for s in group.settings if kept and all(key in s.measures["after"] for key in kept)]
    own = [key for key in group.keys if key.path[:2] == (SUITE, "id") and key.metric == "accuracy"]
    own = [key for key in own if all(key in setting.measures["after"] for setting in scored)]
    if own and kept[0].suite:
        return tuple(own)
    return () if group.task is None else (group.task,)


def _mean_of(keys: Keys) -> str:
    return f"{'mean ' if len(keys) > 1 else ''}accuracy on {spoken(keys)}"


def _accuracy(group: Group, learned: Keys) -> str:
    return _mean_of(learned) if learned[0].suite else f"accuracy on {group.name}"


def _estimate(setting: Setting, keys: Keys, moment: Moment = "after") -> Estimate | None:
    """The accuracy on one data set, or the mean over several."""
    return setting.estimate(keys[0], moment) if len(keys) == 1 else setting.kept(keys, moment)


def _starts(done: list[Setting], task: Keys, kept: Keys) -> list[Series]:
    """The pretrained model, or models where the settings start from several."""
    starts: dict[tuple[str, str], str] = {}
    for setting in done:
        learned, remembered = _estimate(setting, task, "before"), _estimate(setting, kept, "before")
        if learned is not None and remembered is not None:
            model = "/".join(str(setting.runs[0].experiment.get("model", "")).split("/")[-2:])
            starts.setdefault((f"{remembered.value:.4f}", f"{learned.value:.4f}"), model)
    label = "pretrained" if len(starts) == 1 else "pretrained {}"
    return [
        Series(label.format(model), BASE, (float(x),), (float(y),), mark="points")
        for (x, y), model in starts.items()
    ]


def _point(setting: Setting, task: Keys, kept: Keys) -> Series | None:
    learned, remembered = _estimate(setting, task), _estimate(setting, kept)
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


def _path(setting: Setting, kept: Keys) -> Series | None:
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


def _stop(stop: dict, kept: Keys) -> tuple[float, float, float] | None:
    try:
        remembered = [float(stop["retain"][key.data]) for key in kept]
        return float(stop["alpha"]), sum(remembered) / len(remembered), float(stop["accuracy"])
    except (KeyError, TypeError, ValueError):
        return None
