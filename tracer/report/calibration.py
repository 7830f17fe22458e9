"""Is confidence deserved? Reliability diagrams from saved predictions, or from an analysis that made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracer.report.account import Account
from tracer.report.chart import BASE, Axis, Chart, Series
from tracer.report.comparison import Group, Setting
from tracer.report.number import number

Bins = list[tuple[float, float, int]]  # confidence, accuracy, samples
SHARE = {"percent": True, "low": -0.01, "high": 1.01}


def reliability(group: Group, prefix: str) -> list[Chart]:
    """One diagram a setting: how often each confidence came true, before and after."""
    charts = []
    for setting in group.settings:
        found = {} if not setting.finished else _curves(setting.finished[0])
        series = [_series(name, bins, setting) for name, bins in found.items() if bins]
        if series:
            caption = "On the diagonal confidence is deserved, below it the model is too sure."
            name = f"{prefix}-reliability-{setting.slot}"
            x, y = Axis("confidence", **SHARE), Axis("came true", **SHARE)
            charts.append(
                Chart(name, setting.label, caption, x, y, tuple(series), diagonal=True, own_legend=True)
            )
    return charts


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


def _curves(run: Account) -> dict[str, Bins]:
    written = (run.analysis or {}).get("reliability")
    if isinstance(written, dict):
        return {str(name): _bins(rows) for name, rows in written.items()}
    files = sorted((run.folder / "predictions").glob("**/*.safetensors"))
    return {file.stem: _predicted(file) for file in files}


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

    from tracer.errors import UserError
    from tracer.metrics import reliability as curve

    try:
        tensors = load_file(file)
        bins = curve(tensors["logits"].float(), tensors["label"]).bins
    except (SafetensorError, OSError, KeyError, UserError, ValueError):
        return []
    return [(bin.confidence, bin.accuracy, bin.size) for bin in bins]
