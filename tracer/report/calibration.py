"""Reliability diagrams, from saved predictions or from an analysis."""

from __future__ import annotations

from tracer.core.metrics import reliability as reliability_curve
from tracer.measure.answers import Answers
from tracer.report.chart import BASE, Axis, Chart, Point, Series, slug
from tracer.report.comparison import Group
from tracer.report.run_data import RunData, numeric
from tracer.report.scored import WEIGHTS, Moment, with_tensors
from tracer.storage.checksum import short_hash

COLUMNS = ("confidence", "accuracy", "size")
Bins = list[list[float]]  # a row of these columns each
SHARE = {"percent": True, "low": -0.01, "high": 1.01}


def reliability(group: Group) -> list[Chart]:
    """A diagram for each setting and data set: accuracy against confidence, before and after."""
    caption = "On the diagonal the model is calibrated, below it overconfident."
    axes = Axis("confidence", **SHARE), Axis("accuracy", **SHARE)
    charts = []
    for setting in (setting for setting in group.settings if setting.finished):
        slots = {"before": BASE, "after": setting.slot}
        for data, curves in _curves(setting.finished[0]).items():
            series = tuple(
                Series(moment, slots[moment], _points(bins), mark="both")
                for moment, bins in curves.items()
                if bins
            )
            if series:
                name, title = f"reliability-{setting.slot}", setting.label
                if data:
                    name, title = f"{name}-{slug(data)}", f"{title} on {data}"
                if any(chart.name == name for chart in charts):  # of names that differ by a slash alone
                    name = f"{name}-{short_hash(data, 2)}"
                charts.append(Chart(name, title, caption, *axes, series, diagonal=True, own_legend=True))
    return charts


def _points(bins: Bins) -> tuple[Point, ...]:
    """Each bin as a point whose area grows with the number of its samples."""
    most = max(size for *_, size in bins)
    return tuple(
        Point(confidence, accuracy, note=f"{size:.0f} samples", size=0.6 + 1.4 * (size / most) ** 0.5)
        for confidence, accuracy, size in bins
    )


def _curves(run: RunData) -> dict[str, dict[Moment, Bins]]:
    """Bins by data set and moment; the data set "" is the held-out data of an analysis.

    Of saved predictions, those of the pretrained model and of the result are shown, not a teacher's.
    """
    analysed = {moment: run.analysed("reliability", moment) for moment in WEIGHTS}
    curves: dict[str, dict[Moment, Bins]] = {
        "": {
            moment: numeric([row.get(c) for c in COLUMNS] for row in rows)
            for moment, rows in analysed.items()
        }
    }
    for after in run.answers["after"]:
        own = after.role == "task" or after.name == run.experiment.get("held_out")
        if own and any(curves[""].values()):
            continue  # it is there already
        asked = (after.name, after.role, after.key)
        start = (each for each in run.answers["before"] if (each.name, each.role, each.key) == asked)
        pairs: tuple[tuple[Moment, Answers | None], ...] = ("before", next(start, None)), ("after", after)
        curves[run.shown(after)] = {moment: _predicted(run, moment, each) for moment, each in pairs}
    return curves


def _predicted(run: RunData, moment: Moment, known: Answers | None) -> Bins:
    """The bins of what was predicted; none of captions, or where it cannot be read."""
    answers = None if known is None else with_tensors(run.folder, moment, known)
    if answers is None or answers.predictions is None:
        return []
    logits, label, _ = answers.predictions
    return [[bin.confidence, bin.accuracy, bin.size] for bin in reliability_curve(logits.float(), label).bins]
