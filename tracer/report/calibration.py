"""Reliability diagrams, from saved predictions or from an analysis."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError

from tracer.core.errors import UserError
from tracer.core.metrics import reliability as reliability_curve
from tracer.evaluation.predict import Predictions
from tracer.evaluation.score import file_name
from tracer.report.chart import BASE, Axis, Chart, Point, Series, slug
from tracer.report.comparison import Group
from tracer.report.run_data import RunData, numeric
from tracer.report.scored import WEIGHTS, Moment, predictions

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
    names = {file_name(row["shift"]): row["shift"] for row in run.scored["after"]}
    for file in sorted(predictions(run.folder, "after").glob("*.safetensors")):
        name = names.get(file.stem, file.stem)
        if not any(curves[""].values()) or name != run.experiment.get("held_out"):  # else it is there already
            files = {moment: predictions(run.folder, moment) / file.name for moment in WEIGHTS}
            curves[name] = {moment: _predicted(each) for moment, each in files.items()}
    return curves


def _predicted(file: Path) -> Bins:
    """The bins of a file of logits and labels; none where it cannot be read as one."""
    try:
        logits, label, _ = Predictions.read(file)
        bins = reliability_curve(logits.float(), label).bins
    except (SafetensorError, OSError, KeyError, UserError, ValueError):
        return []
    return [[bin.confidence, bin.accuracy, bin.size] for bin in bins]
