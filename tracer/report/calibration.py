"""Reliability diagrams, from saved predictions or from an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError

from tracer.core.errors import UserError
from tracer.core.metrics import reliability as reliability_curve
from tracer.evaluation.predict import Predictions
from tracer.evaluation.score import file_name
from tracer.report.chart import BASE, Axis, Chart, Series, slug
from tracer.report.comparison import Group, Setting
from tracer.report.run_data import RunData, numeric
from tracer.report.scored import WEIGHTS, predictions

COLUMNS = ("confidence", "accuracy", "size")
Bins = Sequence[Sequence[float]]  # a row of these columns each
SHARE = {"percent": True, "low": -0.01, "high": 1.01}


def reliability(group: Group, prefix: str) -> list[Chart]:
    """A diagram for each setting and data set: accuracy against confidence, before and after."""
    caption = "On the diagonal the model is calibrated, below it overconfident."
    axes = Axis("confidence", **SHARE), Axis("accuracy", **SHARE)
    charts = []
    for setting in group.settings:
        for data, curves in _curves(setting.finished[0]).items() if setting.finished else ():
            name, title = f"{prefix}-reliability-{setting.slot}", setting.label
            if data:
                name, title = f"{name}-{slug(data)}", f"{title} on {data}"
            series = tuple(_series(moment, bins, setting) for moment, bins in curves.items() if bins)
            if series:
                charts.append(Chart(name, title, caption, *axes, series, diagonal=True, own_legend=True))
    return charts


def _series(name: str, bins: Bins, setting: Setting) -> Series:
    confidence, accuracy, counts = zip(*bins, strict=True)
    slot = BASE if name == "before" else setting.slot
    notes = tuple(f"{count:.0f} samples" for count in counts)
    sizes = tuple(0.6 + 1.4 * (count / max(counts)) ** 0.5 for count in counts)
    return Series(name, slot, confidence, accuracy, notes=notes, sizes=sizes, mark="both")


def _curves(run: RunData) -> dict[str, dict[str, Bins]]:
    """Bins by data set and moment; the data set "" is the held-out data of an analysis.

    Of saved predictions, those of the pretrained model and of the result are shown, not a teacher's.
    """
    curves: dict[str, dict[str, Bins]] = {"": {}}
    for moment in WEIGHTS:
        rows = run.analysed("reliability", moment)
        curves[""][moment] = numeric([row.get(name) for name in COLUMNS] for row in rows)
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
    return [(bin.confidence, bin.accuracy, bin.size) for bin in bins]
