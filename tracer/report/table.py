"""The tables of the HTML page, with sort keys and the best value of each column marked."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.core.metrics import Interval
from tracer.report.comparison import Group, Setting
from tracer.report.run_data import RunData
from tracer.report.scale import points, shown


@dataclass(frozen=True)
class HtmlCell:
    """A cell; `order` is its sort key."""

    text: str
    order: float | str | None = None
    detail: str = ""  # in small print below the text
    best: bool = False
    bar: Interval | None = None  # a difference of shares, drawn as a bar
    slot: int | None = None  # the colour of a setting, shown before the text


@dataclass(frozen=True)
class HtmlColumn:
    """The head of a column, and which values are better."""

    label: str
    numeric: bool = True
    better: str = ""
    sortable: bool = True
    detail: str = ""  # in small print below the label


@dataclass(frozen=True)
class HtmlTable:
    """Rows of cells; the first `fixed` rows stay on top when the table is sorted, bars end at ± `reach`."""

    caption: str
    columns: tuple[HtmlColumn, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    fixed: int = 0
    title: str = ""
    compact: bool = False  # small print beside the text instead of below
    reach: float = 1.0


EMPTY = HtmlCell("–", None)


def costs(group: Group) -> HtmlTable:
    """Steps, images, time and size of every run."""
    names = ("run", "method", "steps", "batch", "images seen", "time", "images / s", "weights")
    columns = tuple(HtmlColumn(name, numeric=name not in ("run", "method")) for name in names)
    rows = tuple(_cost(setting, run) for setting in group.settings for run in setting.runs)
    return HtmlTable("Time from the first file to the result, pauses and evaluation included.", columns, rows)


def _cost(setting: Setting, run: RunData) -> tuple[HtmlCell, ...]:
    batch = run.experiment.get("batch")
    images = run.step * batch if batch else None
    rate = round(images / run.seconds) if images and run.seconds else None
    file = run.folder / "weights" / "result.safetensors"
    size = file.stat().st_size if file.is_file() else None
    return (
        HtmlCell(run.name, run.name.lower()),
        named(setting),
        count_cell(run.step, f"of {run.steps}" if run.steps and run.step != run.steps else ""),
        count_cell(batch),
        count_cell(images),
        HtmlCell(duration(run.seconds), run.seconds) if run.seconds is not None else EMPTY,
        count_cell(rate),
        HtmlCell(f"{size / 1e6:.1f} MB", size) if size else EMPTY,
    )


def named(setting: Setting) -> HtmlCell:
    """A setting's name with its colour."""
    return HtmlCell(setting.label, setting.label.lower(), slot=setting.slot)


def duration(seconds: float) -> str:
    """Seconds as readable text: 42 s, 17 min, 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def image_number(count: int) -> str:
    """A number of images as text; empty where it is not known."""
    return f"{count:,} images".replace(",", "\u202f") if count else ""


def score_cell(estimate: Interval, percent: bool, start: float | None = None) -> HtmlCell:
    """A value, and below it the change from `start` in points and the interval."""
    details = [points(estimate.value - start)] if start is not None and percent else []
    details += [interval_text(estimate, percent)]
    text = shown(estimate.value, True) if percent else f"{estimate.value:#.3g}".rstrip(".").replace("-", "−")
    return HtmlCell(text, estimate.value, " ".join(filter(None, details)))


def interval_text(estimate: Interval, percent: bool) -> str:
    """The ends of an interval in brackets; empty where it is not known."""
    if not estimate.known:
        return ""
    factor = 100 if percent else 1
    form = "{:.1f}" if percent else "{:#.3g}"
    ends = f"[{form.format(factor * estimate.low)},\xa0{form.format(factor * estimate.high)}]"
    return ends.replace("-", "−")


def count_cell(value: int | None, detail: str = "") -> HtmlCell:
    """A number with spaces between thousands."""
    return EMPTY if value is None else HtmlCell(f"{value:,}".replace(",", " "), value, detail)
