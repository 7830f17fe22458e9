"""docs/theory.md lists the theorems that the code has, and shows the figures that `tracer theory` draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from studies.theory.figures import FIGURES
from studies.theory.spaces import SPACES
from studies.theory.study import TOLERANCE
from studies.theory.theorems import THEOREMS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "theory.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The first table under a heading, its head first; a pipe inside a cell is written with a backslash."""
    under = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in under.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in (cells[0], *cells[2:])]


def test_the_table_of_violations_has_every_theorem_as_the_code_states_it() -> None:
    head, *rows = table("Largest violations found")
    assert head == ["theorem", "statement checked", "origin", *SPACES]
    assert [row[:3] for row in rows] == [[each.name, each.statement, each.origin] for each in THEOREMS]


def test_the_table_of_violations_has_a_number_where_the_code_measures_one() -> None:
    for row, theorem in zip(table("Largest violations found")[1:], THEOREMS, strict=True):
        plain, *featured = row[3:]
        assert float(plain) <= TOLERANCE
        measured = [float(cell) <= TOLERANCE for cell in featured if cell != "–"]
        assert measured == ([True] * len(featured) if theorem.about_inputs else [])


def test_the_page_shows_the_figures_that_are_drawn_and_no_others() -> None:
    shown = re.findall(r"!\[[^]]+\]\((figures/[^)]+)\)", PAGE)
    assert sorted(shown) == sorted(f"figures/theory-{name}.svg" for name in FIGURES)
    stored = [path.relative_to(DOCS).as_posix() for path in DOCS.glob("figures/theory-*")]
    assert sorted(stored) == sorted(shown)


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_kept_are_those_that_are_drawn(name: str, figures_folder: Path) -> None:
    """The same words; and where matplotlib is the one that drew them, the same lines to a hundredth of a point."""
    stored, now = (
        (folder / f"theory-{name}.svg").read_text() for folder in (DOCS / "figures", figures_folder)
    )
    assert words(stored) == words(now)
    if drawn_by(stored) == drawn_by(now):
        assert len(lines(stored)) == len(lines(now))
        assert lines(stored) == pytest.approx(lines(now), abs=0.01)


def words(svg: str) -> list[str]:
    """What is written in a figure: matplotlib draws letters as paths and names them in comments."""
    return re.findall(r"<!-- (.*?) -->", svg)


def drawn_by(svg: str) -> list[str]:
    return re.findall(r"<dc:title>(.*?)</dc:title>", svg)


def lines(svg: str) -> list[float]:
    """Every coordinate of every path."""
    paths = re.findall(r' d="([^"]*)"', svg)
    return [float(number) for path in paths for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", path)]
