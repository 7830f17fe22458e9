"""The whole study behind `tracer theory`: every theorem put to the test, every figure drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tracer.figure import save
from tracer.theory.figures import FIGURES
from tracer.theory.theorems import Result, verify

TOLERANCE = 1e-8


@dataclass(frozen=True)
class Study:
    """What was found, and the files that were written."""

    results: list[Result]
    files: list[Path] = field(default_factory=list)
    tolerance: float = TOLERANCE

    @property
    def holds(self) -> bool:
        """No theorem was found violated by more than the tolerance; a NaN is a violation."""
        return all(result.worst <= self.tolerance for result in self.results)

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """(theorem, statement, origin, largest violation), for whoever draws a table."""
        return [(r.name, r.statement, r.origin, f"{r.worst:.1e}") for r in self.results]

    def lines(self) -> list[str]:
        """The same as plain text, with a verdict."""
        wide = [max(len(row[column]) for row in self.rows) for column in (0, 2)]
        table = [
            f"{worst:>8}  {name:<{wide[0]}}  {origin:<{wide[1]}}  {statement}"
            for name, statement, origin, worst in self.rows
        ]
        broken = [result.name for result in self.results if not result.worst <= self.tolerance]
        verdict = f"violated: {', '.join(broken)}" if broken else "all hold"
        instances = sum(result.instances for result in self.results)
        count = f"{len(self.results)} theorems over {instances} random instances"
        return [*table, f"{count}, tolerance {self.tolerance:g}: {verdict}"]


def study(out: Path | None = None, instances: int = 100, seed: int = 0) -> Study:
    """Verify every theorem and, given a folder, draw every figure into it as SVG and PNG."""
    files = drawn(out) if out is not None else []
    return Study(verify(instances, seed), files)


def drawn(out: Path) -> list[Path]:
    """Draw the figures into `out`; the same code draws the same bytes."""
    return [file for name, draw in FIGURES.items() for file in save(draw(), out, f"theory-{name}")]
