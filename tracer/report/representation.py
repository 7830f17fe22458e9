"""Similarity to the pretrained model and drift of the weights by layer, from analyses."""

from __future__ import annotations

from typing import Any

from tracer.report.chart import Axis, Chart, Series, slug
from tracer.report.comparison import Group, Setting
from tracer.report.number import number

SIMILARITIES = {
    "cka": ("Linear CKA", "1: the layer represents images as in the pretrained model."),
    "svcca": (
        "SVCCA",
        "Mean canonical correlation of the principal directions with those of the pretrained layer.",
    ),
}


def representation(group: Group, prefix: str) -> list[Chart]:
    """CKA, SVCCA and drift by layer, movement within the task, and accuracy at interpolated weights."""
    charts = [_layers(group, prefix, name, *texts) for name, texts in SIMILARITIES.items()]
    for tower in _towers(group):
        charts.append(_drift(group, prefix, tower))
    charts += [_task_share(group, prefix), _meter(group, prefix), _path(group, prefix)]
    return [chart for chart in charts if chart is not None]


def _rows(setting: Setting, part: str) -> list[dict[str, Any]]:
    for run in setting.finished:
        rows = (run.analysis or {}).get(part)
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return rows
    return []


def _chart(
    group: Group,
    name: str,
    title: str,
    caption: str,
    axis: Axis,
    tables: list[list[dict[str, Any]]],
    column: str,
) -> Chart | None:
    """One line per setting over named layers, in the order of the longest list."""
    names = tuple(str(row.get("layer")) for row in max(tables, key=len, default=[]))
    series = []
    for setting, rows in zip(group.settings, tables, strict=True):
        values = {str(row.get("layer")): number(row.get(column)) for row in rows}
        points = [(float(i), values[layer]) for i, layer in enumerate(names) if values.get(layer) is not None]
        if points:
            x, y = zip(*points, strict=True)
            series.append(Series(setting.label, setting.slot, x, y, mark="both"))
    if not series:
        return None
    return Chart(name, title, caption, Axis("layer", names=names), axis, tuple(series))


def _layers(group: Group, prefix: str, column: str, title: str, caption: str) -> Chart | None:
    tables = [_rows(setting, "layers") for setting in group.settings]
    return _chart(group, f"{prefix}-{column}", title, caption, Axis("similarity"), tables, column)


def _towers(group: Group) -> list[str]:
    """Towers with several layers; a single one makes no curve."""
    rows = [row for setting in group.settings for row in _rows(setting, "drift")]
    layers: dict[str, set[str]] = {}
    for row in rows:
        layers.setdefault(str(row.get("tower")), set()).add(str(row.get("layer")))
    return [tower for tower, names in layers.items() if len(names) > 1]


def _drift(group: Group, prefix: str, tower: str) -> Chart | None:
    tables = [
        [row for row in _rows(setting, "drift") if str(row.get("tower")) == tower]
        for setting in group.settings
    ]
    name = f"{prefix}-drift-{slug(tower)}"
    caption = "‖θ − θ₀‖ / ‖θ₀‖ of each layer's weights."
    return _chart(group, name, f"Drift, {tower} tower", caption, Axis("relative drift"), tables, "relative")


def _part(setting: Setting, part: str) -> dict[str, Any]:
    parts = ((run.analysis or {}).get(part) for run in setting.finished)
    return next((value for value in parts if isinstance(value, dict)), {})


def _task_share(group: Group, prefix: str) -> Chart | None:
    """The share of the movement of embeddings inside the task's span, and its expectation by chance."""
    labels = {"inside": "in the task's span", "chance": "by chance"}
    shares = [_part(setting, "task_share") for setting in group.settings]
    tables = [[{"layer": labels[name], "share": share.get(name)} for name in labels] for share in shares]
    caption = "Share of the movement of image embeddings that lies in the span of the class names."
    axis = Axis("share of the movement", percent=True)
    return _chart(group, f"{prefix}-task-share", "Movement within the task", caption, axis, tables, "share")


def _meter(group: Group, prefix: str) -> Chart | None:
    """The forgetting meter's shares by layer."""
    weights = [_part(setting, "meter").get("weights") for setting in group.settings]
    tables = [
        [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [] for rows in weights
    ]
    caption = "Share of each layer's update in the span of its inputs on training images."
    axis = Axis("share inside the task", percent=True)
    return _chart(group, f"{prefix}-meter", "Forgetting meter", caption, axis, tables, "share")


def _path(group: Group, prefix: str) -> Chart | None:
    series = []
    for setting in group.settings:
        points = [(number(row.get("alpha")), number(row.get("accuracy"))) for row in _rows(setting, "path")]
        known = [(a, b) for a, b in points if a is not None and b is not None]
        if len(known) > 1:
            x, y = zip(*known, strict=True)
            series.append(Series(setting.label, setting.slot, x, y, mark="both"))
    if not series:
        return None
    caption = "Task accuracy from the pretrained weights (α = 0) to the result (α = 1)."
    axes = Axis("α"), Axis("task accuracy", percent=True)
    return Chart(f"{prefix}-path", "Interpolated weights", caption, *axes, tuple(series))
