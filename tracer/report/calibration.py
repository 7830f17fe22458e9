"""Is confidence deserved? Reliability diagrams from saved predictions, or from an analysis that made them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracer.evaluation.score import file_name
from tracer.report.account import Account
from tracer.report.chart import BASE, Axis, Chart, Series, slug
from tracer.report.comparison import Group, Setting
from tracer.report.number import number
from tracer.report.scored import Moment, predictions

Bins = list[tuple[float, float, int]]  # confidence, accuracy, samples
SHARE = {"percent": True, "low": -0.01, "high": 1.01}


def reliability(group: Group, prefix: str) -> list[Chart]:
    """A diagram for each setting and data set: how often each confidence came true, before and after."""
    return [
        _chart(f"{prefix}-reliability-{setting.slot}{slugged}", title, series)
        for setting in group.settings
        for slugged, title, series in _diagrams(setting)
    ]


def _diagrams(setting: Setting) -> Iterator[tuple[str, str, tuple[Series, ...]]]:
    """End of the name, title and curves; data sets that were evaluated stand beside what was analysed."""
    for data, found in _curves(setting.finished[0]).items() if setting.finished else ():
        series = tuple(_series(name, bins, setting) for name, bins in found.items() if bins)
        if series:
            yield (
                (f"-{slug(data)}", f"{setting.label} on {data}", series)
                if data
                else ("", setting.label, series)
            )


def _chart(name: str, title: str, series: tuple[Series, ...]) -> Chart:
    caption = "On the diagonal confidence is deserved, below it the model is too sure."
    x, y = Axis("confidence", **SHARE), Axis("came true", **SHARE)
    return Chart(name, title, caption, x, y, series, diagonal=True, own_legend=True)


def _series(name: str, bins: Bins, setting: Setting) -> Series:
    most = max(count for _, _, count in bins)
    return Series(
        name,
        BASE if name == "before" else setting.slot,
        tuple(confidence for confidence, _, _ in bins),
        tuple(accuracy for _, accuracy, _ in bins),
        notes=tuple(f"{count} samples" for _, _, count in bins),
        sizes=tuple(0.6 + 1.4 * (count / most) ** 0.5 for _, _, count in bins),
        mark="both",
    )


def _curves(run: Account) -> dict[str, dict[str, Bins]]:
    """By data set, "" for the held-out data of an analysis, and then by moment.

    Predictions count of the pretrained model and of the result alone: a teacher's say nothing about either.
    """
    found: dict[str, dict[str, Bins]] = {}
    written = (run.analysis or {}).get("reliability")
    if isinstance(written, dict):
        found[""] = {str(name): _bins(rows) for name, rows in written.items()}
    names = {file_name(row["shift"]): row["shift"] for row in run.scored["after"]}
    for file in sorted(predictions(run.folder, "after").glob("*.safetensors")):
        name = names.get(file.stem, file.stem)
        if "" in found and name == run.experiment.get("held_out"):
            continue  # the analysis has shown it
        kept: dict[Moment, Path] = {"before": predictions(run.folder, "before") / file.name, "after": file}
        found[name] = {moment: _predicted(each) for moment, each in kept.items()}
    return found


def _bins(rows: Any) -> Bins:
    found = []
    for row in rows if isinstance(rows, list) else []:
        values = (
            [number(row.get(name)) for name in ("confidence", "accuracy", "size")]
            if isinstance(row, dict)
            else []
        )
        if values and None not in values:
            found.append((values[0], values[1], int(values[2] or 0)))
    return found


def _predicted(file: Path) -> Bins:
    """The curve of a file of logits and labels; nothing where it holds something else."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from tracer.core.errors import UserError
    from tracer.core.metrics import reliability as curve

    try:
        tensors = load_file(file)
        bins = curve(tensors["logits"].float(), tensors["label"]).bins
    except (SafetensorError, OSError, KeyError, UserError, ValueError):
        return []
    return [(bin.confidence, bin.accuracy, bin.size) for bin in bins]
