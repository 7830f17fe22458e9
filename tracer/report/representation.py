"""Similarity to the pretrained model and drift of the weights by layer, from analyses."""

from __future__ import annotations

from itertools import chain
from typing import Any

from tracer.report.chart import Axis, Chart, Point, Series, slug
from tracer.report.comparison import Group, Setting
from tracer.report.run_data import numeric

Rows = list[dict[str, Any]]
SHARES = {"inside": "in the task's span", "chance": "by chance"}


def representation(group: Group) -> list[Chart]:
    """CKA, SVCCA and drift by layer, movement within the task, and accuracy at interpolated weights."""
    layers, drift = _tables(group, "layers"), _tables(group, "drift")
    similarity, shares = Axis("similarity"), [_task_share(setting) for setting in group.settings]
    caption = "1: the layer represents images as in the pretrained model."
    charts = [_by_layer(group, "cka", "Linear CKA", caption, similarity, layers)]
    caption = "Mean canonical correlation of the principal directions with those of the pretrained layer."
    charts.append(_by_layer(group, "svcca", "SVCCA", caption, similarity, layers))
    caption, axis = "‖θ − θ₀‖ / ‖θ₀‖ of each layer's weights.", Axis("relative drift")
    for tower in _towers(drift):
        own = [[row for row in rows if str(row.get("tower")) == tower] for rows in drift]
        name, title = f"drift-{slug(tower)}", f"Drift, {tower} tower"
        charts.append(_by_layer(group, name, title, caption, axis, own, "relative"))
    caption = "Share of the movement of image embeddings that lies in the span of the class names."
    axis = Axis("share of the movement", percent=True)
    title = "Movement within the task"
    charts.append(_by_layer(group, "task-share", title, caption, axis, shares, "share"))
    caption = "Task accuracy from the pretrained weights (α = 0) to the result (α = 1)."
    axes = Axis("α"), Axis("task accuracy", percent=True)
    paths = [[(row.get("alpha"), row.get("accuracy")) for row in rows] for rows in _tables(group, "path")]
    lines = _lines(group, paths, fewest=2)
    charts.append(Chart("path", "Interpolated weights", caption, *axes, lines))
    return [chart for chart in charts if chart.series]


def _tables(group: Group, *names: str) -> list[Rows]:
    """The rows of each setting under these names in the first analysis of its runs that has them."""
    runs = [[run.analysed(*names) for run in setting.finished] for setting in group.settings]
    return [next(filter(None, tables), []) for tables in runs]


def _task_share(setting: Setting) -> Rows:
    """The share of the movement of embeddings inside the task's span, and its expectation by chance."""
    parts = (run.analysis.get("task_share") for run in setting.finished)
    share = next((part for part in parts if isinstance(part, dict)), {})
    return [{"layer": label, "share": share.get(name)} for name, label in SHARES.items()]


def _towers(tables: list[Rows]) -> list[str]:
    """Towers with several layers; a single one makes no curve."""
    layers: dict[str, set[str]] = {}
    for row in chain.from_iterable(tables):
        layers.setdefault(str(row.get("tower")), set()).add(str(row.get("layer")))
    return [tower for tower, names in layers.items() if len(names) > 1]


def _by_layer(
    group: Group, name: str, title: str, caption: str, axis: Axis, tables: list[Rows], column: str = ""
) -> Chart:
    """One line per setting over named layers, in the order of the longest list; the column is called as the chart."""
    names = tuple(str(row.get("layer")) for row in max(tables, key=len, default=[]))
    values = [{str(row.get("layer")): row.get(column or name) for row in rows} for rows in tables]
    lines = _lines(group, [[(i, own.get(layer)) for i, layer in enumerate(names)] for own in values])
    return Chart(name, title, caption, Axis("layer", names=names), axis, lines)


def _lines(group: Group, tables: list[list[tuple[Any, Any]]], fewest: int = 1) -> tuple[Series, ...]:
    """A line for each setting with so many points whose x and y are numbers."""
    points = [tuple(Point(x, y) for x, y in numeric(table)) for table in tables]
    return tuple(
        Series(setting.label, setting.slot, own, mark="both")
        for setting, own in zip(group.settings, points, strict=True)
        if len(own) >= fewest
    )
