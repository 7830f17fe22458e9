"""Test every theorem of the paper, draw its figures: `tracer theory`."""

from __future__ import annotations

from pathlib import Path

from studies.theory.study import study
from tracer.api.terminal import console, errors
from tracer.cli.flags import cli
from tracer.core.errors import at_least


def main(arguments: list[str]) -> int:
    def verify(out: Path = Path("runs/theory"), instances: int = 100, seed: int = 0) -> int:
        """Search random instances for the largest violation of each theorem, and draw the figures.

        Args:
            out: folder of the figures.
            instances: random instances for each theorem.
            seed: seed of the instances.
        """
        at_least(1, instances=instances)
        at_least(0, seed=seed)
        result = study(out, instances, seed)
        for line in result.lines():
            console.print(line, highlight=False, markup=False)
        console.print(
            f"figures: {', '.join(str(file) for file in result.files)}", highlight=False, markup=False
        )
        if not result.holds:
            errors.print("a theorem does not hold", style="bold red")
        return 0 if result.holds else 1

    return cli(verify, arguments, "tracer theory")
