"""Write figures as SVG and PDF, and their data as CSV."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.report.chart import BASE, Chart, Series
from tracer.storage.atomic import write_bytes, write_text

COLOURS = ("#0b62c4", "#c2410c", "#0f766e", "#7c3aed", "#b4236b", "#8a6100", "#4d7c0f", "#475569")
DASHES = ("-", "--", ":")


def write_figures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each chart as SVG, PDF and CSV, named by its id on the page; returns the files."""
    paths: list[Path] = []
    for chart in charts:
        files = {kind: folder / f"{chart.name}.{kind}" for kind in ("svg", "pdf", "csv")}
        write_text(files["csv"], chart.csv())
        for kind in ("svg", "pdf"):
            write_bytes(files[kind], render(chart, kind))
        paths += files.values()
    return paths


def render(chart: Chart, kind: str) -> bytes:
    """The chart as an SVG or PDF file; equal charts give equal bytes."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("figures as files need matplotlib: pip install 'tracer-clip[report]'") from None
    out = io.BytesIO()
    with rc_context(
        {"svg.hashsalt": chart.name, "text.parse_math": False, "font.size": 9, "pdf.fonttype": 42}
    ):
        figure = Figure(figsize=(4.8, 3.4), layout="constrained")
        _draw(chart, figure.subplots())
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def _draw(chart: Chart, axes: Any) -> None:
    for series in chart.series:
        _series(series, axes, 100 if chart.x.percent else 1, 100 if chart.y.percent else 1)
    if chart.diagonal:
        axes.plot([0, 100], [0, 100], color="0.6", linestyle=":", linewidth=1)
    if chart.x.log:
        axes.set_xscale("log")
    elif chart.x.whole:
        axes.xaxis.get_major_locator().set_params(integer=True)
    if chart.x.names:
        axes.set_xticks(range(len(chart.x.names)), chart.x.names, rotation=60, ha="right")
    for write, axis in ((axes.set_xlabel, chart.x), (axes.set_ylabel, chart.y)):
        write(f"{axis.label}, %" if axis.percent else axis.label)
    axes.set_title(chart.title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    if len([series for series in chart.series if not series.guide]) > 1:
        axes.legend(frameon=False, fontsize=8)


def _series(series: Series, axes: Any, x_factor: float, y_factor: float) -> None:
    colour = "0.45" if series.slot == BASE else COLOURS[series.slot % len(COLOURS)]
    dash = "none" if series.mark == "points" else DASHES[max(0, series.slot) // len(COLOURS) % len(DASHES)]
    axes.plot(
        [x_factor * point.x for point in series.points],
        [y_factor * point.y for point in series.points],
        color=colour,
        linestyle=dash,
        linewidth=0.8 if series.guide else 1.6,
        marker="" if series.mark == "line" else "o",
        markersize=4,
        label=f"_{series.name}" if series.guide else series.name,
    )
    ends = [(x_factor * at, y_factor * low, y_factor * high) for at, low, high in series.intervals]
    if ends and series.mark == "line":
        axes.fill_between(*zip(*ends, strict=True), color=colour, alpha=0.16, linewidth=0)
    elif ends:
        axes.vlines(*zip(*ends, strict=True), colors=colour, linewidth=1)
