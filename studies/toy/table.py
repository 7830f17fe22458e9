"""The study as tables: every strategy at every λ, mean and spread over seeds, and what is left of each teacher."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from studies.toy.frontier import MEASURES, Point, Row, curve, points, star
from studies.toy.published import PROGRESS, TEACHING, reported
from studies.toy.strategies import TITLES
from studies.toy.study import Found
from studies.toy.teaching import LATER, Curves, shape
from tracer.core.metrics import Spread

HEADS = (
    *("strategy", "λ", "new task", "original", "lost", "coloured", "flipped"),
    *("ECE new task", "ECE original", "lost in the paper"),
)
NOTES = {
    "*": "* keeps most among the λ that learn the task",
    "(*)": "(*) learns most, as no λ of the strategy learns the task",
}


def text(found: Found) -> str:
    """All points in percent; the best λ of each strategy has a star, and a note says what it stands for."""
    lines = list(_lines(found))
    notes = [f"{note}\n" for mark, note in NOTES.items() if any(mark == each for each, *_ in lines)]
    cells = [(title, f"{mark} {strength}".lstrip(), *rest) for mark, title, strength, *rest in lines]
    return _aligned([HEADS, *cells]) + "".join(notes)


def markdown(found: Found) -> str:
    """The table as docs/toy.md has it: a starred λ is bold, one with a star in brackets keeps its mark."""
    shown = {"": "{}", "*": "**{}**", "(*)": "(\\*) {}"}
    lines = [HEADS, ("---", *["--:"] * (len(HEADS) - 1))]
    for mark, title, strength, *rest in _lines(found):
        lines.append((title, shown[mark].format(strength), *rest))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


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


def _lines(found: Found) -> Iterator[tuple[str, ...]]:
    """Every point as its star and its cells; the paper's number stands on one line of a strategy only."""
    averaged = points(found.rows)
    for point in (each for name in TITLES for each in curve(averaged, name)):
        mark = star(averaged, point)
        strength = "" if point.strength is None else f"{point.strength:g}"
        numbers = [_cell(point, measure) for measure in MEASURES]
        told = reported(found.task, point.strategy) if mark == "*" or point.strategy == "direct" else None
        yield mark, TITLES[point.strategy], strength, *numbers, f"{100 * told.forgotten:.1f}" if told else ""


def _cell(point: Point, measure: str) -> str:
    """What is lost is told of models that were finetuned."""
    return "" if (point.strategy, measure) == ("pretrained", "forgotten") else _shown(point.spread[measure])


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
