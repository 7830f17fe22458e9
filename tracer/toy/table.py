"""The study as tables: every strategy at every λ, mean and spread over seeds, and what is left of each teacher."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from tracer.metrics import Spread
from tracer.toy.frontier import MEASURES, Point, Row, best, curve, points
from tracer.toy.published import PROGRESS, PUBLISHED, TEACHING
from tracer.toy.strategies import TITLES
from tracer.toy.teaching import LATER, Curves, shape

HEADS = ("strategy", "λ", "new task", "original", "lost", "coloured", "flipped", "ECE new", "ECE original")


def text(rows: Sequence[Row]) -> str:
    """All points in percent; the λ that keeps most, of a strategy's λ that learn the task, has a star."""
    averaged = points(rows)
    ordered = [point for name in TITLES for point in curve(averaged, name)]
    starred = {id(best(averaged, point.strategy)) for point in ordered if point.strength is not None}
    return _aligned([(*HEADS, "lost in the paper"), *(_cells(each, id(each) in starred) for each in ordered)])


def shapes(taught: Mapping[str, Curves]) -> str:
    """The peak of each teacher's KL and what is left of it later; in brackets the paper's released logs."""
    lines = [("teacher", "peak KL", "at", *(f"left at {share:.0%}" for share in LATER))]
    for name, run in taught.items():
        found, told = shape(run), TEACHING.get(name)
        left = [f"{100 * found.left[share]:.0f} %" for share in LATER]
        if told:
            reference = dict(zip(PROGRESS, told, strict=True))
            left = [
                f"{one} ({100 * reference[at] / max(told):.0f} %)"
                for one, at in zip(left, LATER, strict=True)
            ]
        lines.append((name, f"{found.peak:.4f}", f"{found.at:.0%}", *left))
    return _aligned(lines)


def comma_separated(rows: Sequence[Row]) -> str:
    """One line a run, shares between 0 and 1."""
    content = io.StringIO()
    writer = csv.DictWriter(content, list(rows[0].to_json()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.to_json() for row in rows)
    return content.getvalue()


def _cells(point: Point, star: bool) -> tuple[str, ...]:
    told = PUBLISHED.get(point.strategy)
    strength = "" if point.strength is None else f"{'* ' if star else ''}{point.strength:g}"
    numbers = [_shown(point.spread[measure]) for measure in MEASURES]
    return TITLES[point.strategy], strength, *numbers, f"{100 * told.forgotten:.1f}" if told else ""


def _shown(spread: Spread) -> str:
    mean = f"{100 * spread.mean:.1f}"
    return mean if spread.std is None else f"{mean} ± {100 * spread.std:.1f}"


def _aligned(lines: Iterable[tuple[str, ...]]) -> str:
    """Columns of equal width: the first flush left, numbers flush right."""
    lines = list(lines)
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ranked = [[cell.rjust(width) for cell, width in zip(line, wide, strict=True)] for line in lines]
    return "".join(
        "  ".join([line[0].ljust(wide[0]), *cells[1:]]).rstrip() + "\n"
        for line, cells in zip(lines, ranked, strict=True)
    )
