"""Measure what training costs, against released-style code in the same run: `tracer bench`."""

from __future__ import annotations

from pathlib import Path

import tyro

from tracer.atomic import write_text
from tracer.console import console, show_table
from tracer.errors import UserError, unknown

ONCE = {"data": "Data", "sizes": "Parameters"}  # the same whichever the model


def main(arguments: list[str]) -> int:
    def bench(
        models: tuple[str, ...] = ("ViT-B-16",),
        batch: int = 8,
        rounds: int = 5,
        only: tuple[str, ...] = ("steps", "teacher", "head", "chunks", "data"),
        results: Path | None = None,
        out: Path | None = None,
    ) -> int:
        """Time pairs of work in turns and show the ratios: ours over the reference, below 1 is faster.

        Args:
            models: models of open_clip, with random weights.
            batch: images a step.
            rounds: how often each pair is timed.
            only: of steps, overhead, teacher, head, chunks, data, growth, sizes, memory and, for minutes, large.
            results: a JSON file that keeps what was measured; the page shows what earlier runs have left in it, too.
            out: a Markdown page to write.
        """
        from tracer.bench.page import HEADER, cells, page
        from tracer.bench.results import read, section, write
        from tracer.bench.table import SETS

        for name in only:
            if name not in SETS:
                raise unknown("benchmark", name, SETS)
        if batch < 2 or rounds < 1:
            raise UserError(f"a benchmark needs a batch of 2 and a round or more, not {batch} and {rounds}")
        sections = read(results) if results is not None else {}
        measured: set[str] = set()
        for model, name in ((model, name) for model in models for name in only):
            title = ONCE.get(name, f"{model}, batch {batch}: {name}")
            if title in measured:
                continue
            with console.status(title):
                sections[title] = section(SETS[name](model, batch, rounds), rounds)
            measured.add(title)
            show_table(title, HEADER, [cells(row) for row in sections[title].rows])
            if results is not None:  # at once: whatever stops the next one
                write(results, sections)
        if out is not None:
            write_text(out, page(sections))
            console.print(f"written to {out}", highlight=False, markup=False)
        return 0

    return tyro.cli(bench, args=arguments, prog="tracer bench")
