"""The study behind `tracer theory`: tests every theorem and draws every figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from studies.figure import save
from studies.theory.figures import FIGURES
from studies.theory.spaces import SPACES
from studies.theory.theorems import THEOREMS, Result, verify

TOLERANCE = 1e-8
FEWER = 10  # feature spaces get this fraction of the instances, since drawing them is slower


@dataclass(frozen=True)
class Study:
    """The results, and the files that were written."""

    results: list[Result]
    files: list[Path] = field(default_factory=list)
    tolerance: float = TOLERANCE

    @property
    def broken(self) -> list[Result]:
        """The results violated by more than the tolerance; a NaN is a violation."""
        return [result for result in self.results if not result.worst <= self.tolerance]

    @property
    def holds(self) -> bool:
        """Whether no theorem was violated."""
        return not self.broken

    @property
    def rows(self) -> list[tuple[str, str, str, *tuple[str, ...]]]:
        """The rows of a table: theorem, statement, origin, largest violation in each space."""
        violations = {(result.name, result.space): f"{result.worst:.1e}" for result in self.results}
        theorems = {result.name: result for result in self.results}
        return [
            (name, r.statement, r.origin, *(violations.get((name, space), "–") for space in SPACES))
            for name, r in theorems.items()
        ]

    def lines(self) -> list[str]:
        """The table as lines of text, with a verdict."""
        titles = ("theorem", "statement", "origin", *SPACES)
        wide = [max(map(len, column)) for column in zip(titles, *self.rows, strict=True)]
        table = []
        for row in (titles, *self.rows):
            name, statement, origin, *violations = (f"{x:<{w}}" for x, w in zip(row, wide, strict=True))
            table.append(f"{'  '.join(violations)}  {name}  {origin}  {statement}".rstrip())
        verdict = f"violated: {', '.join(map(_where, self.broken))}" if self.broken else "all hold"
        instances = sum(result.instances for result in self.results)
        count = f"{len(self.rows)} theorems over {instances} random instances"
        return [*table, f"{count}, tolerance {self.tolerance:g}: {verdict}"]


def study(out: Path | None = None, instances: int = 100, seed: int = 0) -> Study:
    """Verify every theorem in every space; if `out` is given, draw every figure into it as SVG and PNG."""
    files = draw_figures(out) if out is not None else []
    results = verify(instances, seed)
    about_inputs = [theorem for theorem in THEOREMS if theorem.about_inputs]
    for space in [*SPACES][1:]:
        results += verify(-(-instances // FEWER), seed, about_inputs, space)
    return Study(results, files)


def draw_figures(out: Path) -> list[Path]:
    """Draw the figures into `out`; the same code gives the same bytes."""
    return [file for name, draw in FIGURES.items() for file in save(draw(), out, f"theory-{name}")]


def _where(result: Result) -> str:
    return result.name if result.space == "inputs" else f"{result.name} ({result.space})"
