"""Measure what training costs, against released-style code in the same run: `tracer bench`."""

from __future__ import annotations

from pathlib import Path

import tyro

from tracer.atomic import write_text
from tracer.console import console, show_table
from tracer.errors import UserError, unknown


def main(arguments: list[str]) -> int:
    def bench(
        models: tuple[str, ...] = ("ViT-B-16",),
        batch: int = 8,
        rounds: int = 5,
        only: tuple[str, ...] = ("steps", "teacher", "head", "chunks", "memory", "data"),
        out: Path | None = None,
    ) -> int:
        """Time pairs of work in turns and show the ratios.

        Args:
            models: models of open_clip, with random weights.
            batch: images a step.
            rounds: how often each pair is timed.
            only: what to measure: steps, overhead, teacher, head, chunks, memory, data, growth.
            out: a Markdown page to write.
        """
        from tracer.bench.page import HEADER, Row, page
        from tracer.bench.table import SETS

        for name in only:
            if name not in SETS:
                raise unknown("benchmark", name, SETS)
        if batch < 2 or rounds < 1:
            raise UserError(
                f"a benchmark needs a batch of 2 or more and a round or more, not {batch} and {rounds}"
            )
        sections: dict[str, list[Row]] = {}
        for model in models:
            for name in only:
                if name == "data" and "Data" in sections:
                    continue  # it is the same for every model
                title = "Data" if name == "data" else f"{model}, batch {batch}: {name}"
                sections[title] = SETS[name](model, batch, rounds)
                show_table(title, HEADER, [row.cells for row in sections[title]])
        if out is not None:
            write_text(out, page(sections, (f"{rounds} rounds",)))
            console.print(f"written to {out}", highlight=False, markup=False)
        return 0

    return tyro.cli(bench, args=arguments, prog="tracer bench")
