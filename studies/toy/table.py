"""Tables of the study: every strategy at every λ, mean and spread over seeds; and the teachers' KL."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from studies.toy.frontier import MEASURES, Point, Row, curve, points, star
from studies.toy.published import PROGRESS, TEACHING, reported
from studies.toy.strategies import TITLES
from studies.toy.study import Results
from studies.toy.teaching import LATER, Curves, shape
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Spread

HEADS = (
    *("strategy", "λ", "new task", "original", "lost", "coloured", "flipped"),
    *("ECE new task", "ECE original", "lost in the paper"),
)
NOTES = {
    "*": "* keeps most among the λ that learn the task",
    "(*)": "(*) learns most, as no λ of the strategy learns the task",
}


def text(results: Results) -> str:
    """The table as text, in per cent; the best λ of each strategy has a star, which a note explains."""
    lines = list(_lines(results))
    notes = [f"{note}\n" for mark, note in NOTES.items() if any(mark == each for each, *_ in lines)]
    cells = [(title, f"{mark} {strength}".lstrip(), *rest) for mark, title, strength, *rest in lines]
    return _aligned([HEADS, *cells]) + "".join(notes)


def markdown(results: Results) -> str:
    """The table as in docs/toy.md: a starred λ is bold, one with a star in brackets keeps its mark."""
    shown = {"": "{}", "*": "**{}**", "(*)": "(\\*) {}"}
    rows = [(title, shown[mark].format(strength), *rest) for mark, title, strength, *rest in _lines(results)]
    return markdown_table(HEADS, rows) + "\n"


def shapes(runs: Mapping[str, Curves]) -> str:
    """The peak of each teacher's KL and the share of it left later; in brackets those of the released logs."""
    lines = [("teacher", "peak KL", "at", *(f"left at {share:.0%}" for share in LATER))]
    for name, run in runs.items():
        measured, paper = shape(run), TEACHING.get(name)
        left = [f"{100 * measured.left[share]:.0f} %" for share in LATER]
        if paper:
            reference = dict(zip(PROGRESS, paper, strict=True))
            left = [
                f"{one} ({100 * reference[at] / max(paper):.0f} %)"
                for one, at in zip(left, LATER, strict=True)
            ]
        lines.append((name, f"{measured.peak:.4f}", f"{measured.at:.0%}", *left))
    return _aligned(lines)


def comma_separated(rows: Sequence[Row]) -> str:
    """One line for each run, values between 0 and 1."""
    content = io.StringIO()
    writer = csv.DictWriter(content, list(rows[0].to_json()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.to_json() for row in rows)
    return content.getvalue()


def _lines(results: Results) -> Iterator[tuple[str, ...]]:
    """The star and the cells of every point; the paper's number is on one line of a strategy only."""
    averaged = points(results.rows)
    for point in (each for name in TITLES for each in curve(averaged, name)):
        mark = star(averaged, point)
        strength = "" if point.strength is None else f"{point.strength:g}"
        numbers = [_cell(point, measure) for measure in MEASURES]
        paper = reported(results.task, point.strategy) if mark == "*" or point.strategy == "direct" else None
        yield (
            mark,
            TITLES[point.strategy],
            strength,
            *numbers,
            f"{100 * paper.forgotten:.1f}" if paper else "",
        )


def _cell(point: Point, measure: str) -> str:
    """A value with its spread; the pretrained model has no loss."""
    return "" if (point.strategy, measure) == ("pretrained", "forgotten") else _shown(point.spread[measure])


def _shown(spread: Spread) -> str:
    mean = f"{100 * spread.mean:.1f}"
    return mean if spread.std is None else f"{mean} ± {100 * spread.std:.1f}"


def _aligned(lines: Iterable[tuple[str, ...]]) -> str:
    """Aligned columns: the first flush left, the others flush right."""
    lines = list(lines)
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ranked = [[cell.rjust(width) for cell, width in zip(line, wide, strict=True)] for line in lines]
    return "".join(
        "  ".join([line[0].ljust(wide[0]), *cells[1:]]).rstrip() + "\n"
        for line, cells in zip(lines, ranked, strict=True)
    )
