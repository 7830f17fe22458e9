"""The page of the toy study and its figures say what the numbers in studies/toy/results say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from studies.toy.files import read_comparison, read_teachers, show
from studies.toy.frontier import points, star
from studies.toy.published import PUBLISHED
from studies.toy.strategies import TITLES
from studies.toy.teaching import LATER, shape

ROOT = Path(__file__).parents[3]
EVIDENCE, FIGURES, PAGE = (
    ROOT / "studies" / "toy" / "results",
    ROOT / "docs" / "figures",
    ROOT / "docs" / "toy.md",
)
MEASURES = {
    "new task": "task",
    "original": "original",
    "lost": "forgotten",
    "coloured": "coloured",
    "flipped": "flipped",
    "ECE new task": "task_ece",
    "ECE original": "original_ece",
}
NAMES = {title: name for name, title in TITLES.items()}
Line = dict[str, str]


def tables(page: str, first: str) -> Iterator[tuple[str, list[Line]]]:
    """Every table whose first column is called `first`, with the JSON that was last named above it."""
    for match in re.finditer(rf"^\| *{first} *\|.*\n(\|.*\n?)+", page, re.M):
        head, _, *body = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in match[0].splitlines()
        )
        source = re.findall(r"\]\(\.\./studies/toy/results/(\w+)\.json\)", page[: match.start()])[-1]
        yield source, [dict(zip(head, line, strict=True)) for line in body]


def strength(cell: str) -> float | None:
    """A λ, whatever marks it has."""
    number = re.sub(r"[*()\\ ]", "", cell)
    return float(number) if number else None


def wrong(line: Line, rows: list[dict[str, float]]) -> Iterator[str]:
    """The cells of a line that its runs do not bear."""
    for column, measure in MEASURES.items():
        if column not in line or (column == "lost" and line["strategy"] == "pretrained"):
            continue
        values = 100 * np.array([row[measure] for row in rows])
        expected = [values.mean(), values.std(ddof=1)] if len(values) > 1 else [values.mean()]
        shown = [float(number) for number in line[column].split("±")]
        if len(shown) != len(expected) or np.abs(np.subtract(shown, expected)).max() > 0.05 + 1e-9:
            yield f"{line['strategy']} {line['λ']}, {column}: {line[column]}, not {expected}"


def test_both_tasks_have_a_table():
    assert {source for source, _ in tables(PAGE.read_text(), "strategy")} == {"colour", "group"}


@pytest.mark.parametrize(
    ("source", "lines"), list(tables(PAGE.read_text(), "strategy")), ids=lambda each: each[:6]
)
def test_the_tables_are_those_of_the_runs(source: str, lines: list[Line]) -> None:
    rows = json.loads((EVIDENCE / f"{source}.json").read_text())["rows"]
    keys = [(NAMES[line["strategy"]], strength(line["λ"])) for line in lines]
    assert len(set(keys)) == len(keys)
    assert set(keys) == {(row["strategy"], row["strength"]) for row in rows}
    for key, line in zip(keys, lines, strict=True):
        same = [row for row in rows if (row["strategy"], row["strength"]) == key]
        assert not list(wrong(line, same))


@pytest.mark.parametrize(
    ("source", "lines"), list(tables(PAGE.read_text(), "strategy")), ids=lambda each: each[:6]
)
def test_the_best_strengths_are_marked_and_carry_the_number_of_the_paper(
    source: str, lines: list[Line]
) -> None:
    averaged = points(read_comparison(EVIDENCE / f"{source}.json").rows)
    marks = {(point.strategy, point.strength): star(averaged, point) for point in averaged}
    shown = {"*": r"\*\*.+\*\*", "(*)": r"\(.*\*\).+", "": r"[^*]*"}
    for line in lines:
        key = NAMES[line["strategy"]], strength(line["λ"])
        if any("*" in each["λ"] for each in lines):
            assert re.fullmatch(shown[marks[key]], line["λ"]), line
        paper = (
            PUBLISHED.get(key[0])
            if source == "colour" and (marks[key] == "*" or key[0] == "direct")
            else None
        )
        assert line.get("lost in the paper", "") == (f"{100 * paper.forgotten:.1f}" if paper else ""), line


def test_the_table_of_teachers_is_that_of_their_curves():
    ((source, lines),) = tables(PAGE.read_text(), "teacher")
    runs = read_teachers(EVIDENCE / f"{source}.json").values()
    for line, run in zip(lines, runs, strict=True):
        _, peak, at, *left = line.values()
        measured = shape(run)
        assert (peak, at) == (f"{measured.peak:.4f}", f"{100 * measured.at:.0f} %")
        assert [cell.split(" ")[0] for cell in left] == [
            f"{100 * measured.left[share]:.0f}" for share in LATER
        ]


def test_a_digit_changed_is_noticed():
    page = PAGE.read_text()
    (_, lines), *_ = tables(page.replace("| 91.2 ± 1.3 |", "| 91.3 ± 1.3 |"), "strategy")
    rows = json.loads((EVIDENCE / "colour.json").read_text())["rows"]
    (line,) = [line for line in lines if (line["strategy"], strength(line["λ"])) == ("TRACER", 1)]
    same = [row for row in rows if (row["strategy"], row["strength"]) == ("tracer", 1)]
    assert len(list(wrong(line, same))) == 1


@pytest.mark.parametrize("source", sorted(file.stem for file in EVIDENCE.glob("*.json")))
def test_the_figures_are_drawn_from_the_numbers(source: str, tmp_path: Path) -> None:
    show(EVIDENCE / f"{source}.json", tmp_path)
    for file in sorted(tmp_path.glob("*.svg")):
        stored = (FIGURES / file.name).read_text()
        assert f"figures/{file.name}" in PAGE.read_text()
        if f"Matplotlib v{matplotlib.__version__}," not in stored:
            pytest.skip("another matplotlib sets the same figure a hair differently")
        assert file.read_text() == stored, (
            f"tracer toy --show studies/toy/results/{source}.json --out docs/figures"
        )
