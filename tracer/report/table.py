"""The tables of the HTML page, with sort keys and the best value of each column marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracer.core.metrics import Interval
from tracer.report.comparison import Group, Moment, Setting
from tracer.report.measures import Key, image_count
from tracer.report.run_data import RunData
from tracer.report.scale import points, shown

MAX_MEASURES = 8  # in one table of the comparison, which then fits its page


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


def comparison(group: Group, *, further: bool = False) -> HtmlTable | None:
    """Pretrained models, then every setting; a column per measure, with changes and intervals.

    The first measures, or as many after them with `further`.
    """
    finished = group.finished
    start = MAX_MEASURES if further else 0
    keys = [key for key in group.keys if key.role is None][start : start + MAX_MEASURES]
    if not finished or not keys:
        return None
    first = [(HtmlCell(name, ""), *_scores(s, keys, "before")) for name, s in starts(finished).items()]
    rows = [(named(setting), *_scores(setting, keys, "after")) for setting in finished]
    best = [None, *(_best([row[i] for row in rows], key.better) for i, key in enumerate(keys, 1))]
    rows = [
        tuple(replace(cell, best=cell.text == text) for cell, text in zip(row, best, strict=True))
        for row in rows
    ]
    columns = [HtmlColumn("setting", numeric=False)]
    columns += [HtmlColumn(key.label, better=key.better or "", detail=_images(finished, key)) for key in keys]
    several = any(len(setting.finished) > 1 for setting in finished)
    if several:
        columns.append(HtmlColumn("seeds"))
        first = [(*row, EMPTY) for row in first]
        rows = [(*row, count_cell(len(s.finished))) for row, s in zip(rows, finished, strict=True)]
    return HtmlTable(caption(several), tuple(columns), (*first, *rows), fixed=len(first))


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


def starts(settings: Sequence[Setting]) -> dict[str, Setting]:
    """The names of the pretrained models that the settings start from, each with its first setting."""
    models: dict[str, Setting] = {}
    for setting in settings:
        experiment = setting.runs[0].experiment
        models.setdefault(f"Pretrained {experiment.get('model')} {experiment.get('pretrained')}", setting)
    if not models:
        return {}
    random = settings[0].runs[0].experiment.get("pretrained") == "none"
    return models if len(models) > 1 else {"Random start" if random else "Pretrained": settings[0]}


def _images(settings: Sequence[Setting], key: Key) -> str:
    """The number of images behind a column."""
    counts = {image_count(run, key) for setting in settings for run in setting.finished}
    return image_number(counts.pop()) if len(counts) == 1 else ""


def image_number(count: int) -> str:
    """A number of images as text; empty where it is not known."""
    return f"{count:,} images".replace(",", "\u202f") if count else ""


def _scores(setting: Setting, keys: Sequence[Key], moment: Moment) -> list[HtmlCell]:
    cells = []
    for key in keys:
        estimate, before = setting.estimate(key, moment), setting.estimate(key, "before")
        start = before.value if before is not None and moment == "after" else None
        cells.append(EMPTY if estimate is None else score_cell(estimate, key.percent, start))
    return cells


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


def _best(cells: Sequence[HtmlCell], better: str | None) -> str | None:
    """The best value of a column as displayed; None where all are equal or no direction is better."""
    texts = {cell.order: cell.text for cell in cells if isinstance(cell.order, float)}
    if better is None or len({*texts.values()}) < 2:
        return None
    return texts[max(texts) if better == "higher" else min(texts)]


def caption(several: bool) -> str:
    """The caption of a table of scores."""
    over = "over seeds (Student's t) where there are several, else over samples"
    return (
        "Below each value: change from the pretrained model in points, and the 95 % interval in brackets, "
        f"{over if several else 'over samples where their number is known'}. "
        "Bold: the best of its column, as rounded."
    )


def count_cell(value: int | None, detail: str = "") -> HtmlCell:
    """A number with spaces between thousands."""
    return EMPTY if value is None else HtmlCell(f"{value:,}".replace(",", " "), value, detail)
