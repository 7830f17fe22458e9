"""The tables of a page: cells know what they show, how they sort, and which is the best of its column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracer.report.account import Account
from tracer.report.comparison import Group, Moment, Setting
from tracer.report.headline import points
from tracer.report.measures import Key
from tracer.report.scale import shown
from tracer.report.spread import Estimate

MOST = 10  # measures in the comparison; the others are in each run's details


@dataclass(frozen=True)
class Cell:
    """What stands in a field; `order` is what it sorts by."""

    text: str
    order: float | str | None = None
    detail: str = ""  # in small print below
    best: bool = False
    slot: int | None = None  # the colour of a setting


@dataclass(frozen=True)
class Column:
    """How a column is headed, set and judged."""

    label: str
    numeric: bool = True
    better: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; `fixed` rows stay on top however it is sorted."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    fixed: int = 0
    title: str = ""


EMPTY = Cell("–", None)


def comparison(group: Group) -> Table | None:
    """Pretrained models first, then every setting: a column a measure, with changes and intervals."""
    done = [setting for setting in group.settings if setting.finished]
    keys = [key for key in group.keys if not key.suite][:MOST]
    if not done or not keys:
        return None
    several = any(len(setting.finished) > 1 for setting in done)
    first = [(Cell(name, ""), *_scores(s, keys, "before"), EMPTY) for name, s in starts(done).items()]
    rows = [(named(s), *_scores(s, keys, "after"), Cell(str(len(s.finished)), len(s.finished))) for s in done]
    columns = [
        Column("setting", numeric=False),
        *(Column(key.label, better=key.better or "") for key in keys),
    ]
    best = {(i, j) for j, key in enumerate(keys, 1) for i in _marked(rows, j, key)}
    body = [
        tuple(replace(cell, best=(i, j) in best) for j, cell in enumerate(row)) for i, row in enumerate(rows)
    ]
    shown_rows = first + body if several else [row[:-1] for row in first + body]
    columns += [Column("seeds")] if several else []
    return Table(caption(several), tuple(columns), tuple(shown_rows), fixed=len(first))


def costs(group: Group) -> Table:
    """Steps, images, time and size of every run."""
    columns = ("run", "method", "steps", "batch", "images seen", "time", "images / s", "weights")
    rows = [_cost(setting, run) for setting in group.settings for run in setting.runs]
    named = tuple(Column(name, numeric=name not in ("run", "method")) for name in columns)
    told = "Time runs from the first file to the result, pauses and evaluation included."
    return Table(told, named, tuple(rows))


def _cost(setting: Setting, run: Account) -> tuple[Cell, ...]:
    batch = run.experiment.get("batch")
    batch = batch if isinstance(batch, int) else None
    images = run.step * batch if batch else None
    rate = round(images / run.seconds) if images and run.seconds else None
    file = run.folder / "weights" / "result.safetensors"
    size = file.stat().st_size if file.is_file() else None
    return (
        Cell(run.name, run.name.lower()),
        named(setting),
        _count(run.step, f"of {run.steps}" if run.steps and run.step != run.steps else ""),
        _count(batch),
        _count(images),
        Cell(duration(run.seconds), run.seconds) if run.seconds is not None else EMPTY,
        _count(rate),
        Cell(f"{size / 1e6:.1f} MB", size) if size else EMPTY,
    )


def named(setting: Setting) -> Cell:
    """A setting's name beside its colour."""
    return Cell(setting.label, setting.label.lower(), slot=setting.slot)


def duration(seconds: float | None) -> str:
    """Seconds as a person would say them."""
    if seconds is None:
        return "–"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def starts(done: Sequence[Setting]) -> dict[str, Setting]:
    """The pretrained model, or each of them where the settings start from several."""
    found: dict[str, Setting] = {}
    for setting in done:
        experiment = setting.runs[0].experiment
        found.setdefault(f"Pretrained {experiment.get('model')} {experiment.get('pretrained')}", setting)
    if not found:
        return {}
    random = done[0].runs[0].experiment.get("pretrained") == "none"
    return found if len(found) > 1 else {"Random start" if random else "Pretrained": done[0]}


def _scores(setting: Setting, keys: Sequence[Key], moment: Moment) -> list[Cell]:
    cells = []
    for key in keys:
        estimate, before = setting.estimate(key, moment), setting.estimate(key, "before")
        start = before.value if before is not None and moment == "after" else None
        cells.append(EMPTY if estimate is None else scored(estimate, key.percent, start))
    return cells


def scored(estimate: Estimate, percent: bool, start: float | None = None) -> Cell:
    """A value, and below it the points gained since the start and the interval."""
    details = [points(estimate.value - start)] if start is not None and percent else []
    details += _interval(estimate, percent)
    text = shown(estimate.value, True) if percent else f"{estimate.value:#.3g}".rstrip(".").replace("-", "−")
    return Cell(text, estimate.value, " ".join(details))


def _interval(estimate: Estimate, percent: bool) -> list[str]:
    if estimate.low is None or estimate.high is None:
        return []
    factor = 100 if percent else 1
    form = "{:.1f}" if percent else "{:#.3g}"
    return [
        f"[{form.format(factor * estimate.low)},\xa0{form.format(factor * estimate.high)}]".replace("-", "−")
    ]


def _marked(rows: Sequence[tuple[Cell, ...]], column: int, key: Key) -> list[int]:
    """Rows that are best as shown; none where all are alike or better has no meaning."""
    known = {i: row[column] for i, row in enumerate(rows) if isinstance(row[column].order, float)}
    if key.better is None or len({cell.text for cell in known.values()}) < 2:
        return []
    orders = [cell.order for cell in known.values() if isinstance(cell.order, float)]
    target = max(orders) if key.better == "higher" else min(orders)
    text = next(cell.text for cell in known.values() if cell.order == target)
    return [i for i, cell in known.items() if cell.text == text]


def caption(several: bool) -> str:
    """What stands below each value."""
    over = "over seeds (Student's t) where there are several, else over samples"
    return (
        "Below each value: change against the pretrained model in points, and the 95 % interval in brackets, "
        f"{over if several else 'over samples where their number is known'}. "
        "Bold: the best of its column, as rounded."
    )


def _count(value: int | None, detail: str = "") -> Cell:
    return EMPTY if value is None else Cell(f"{value:,}".replace(",", " "), value, detail)
