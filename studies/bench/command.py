"""Measure what training costs, against released-style code in the same run: `tracer bench`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter, process_time
from typing import Literal

import tyro

from tracer.cli.console import console, show_table
from tracer.core.errors import at_least, unknown
from tracer.storage.atomic import write_text

ONCE = {"data": "Data", "sizes": "Parameters"}  # the same whichever the model
CLOCKS = {
    "wall": (perf_counter, "time on the wall"),
    "processor": (process_time, "processor time of one thread, beside the work of others"),
}


def main(arguments: list[str]) -> int:
    def bench(
        models: tuple[str, ...] = ("ViT-B-16",),
        batch: int = 8,
        rounds: int = 5,
        only: tuple[str, ...] = ("steps", "teacher", "head", "chunks", "data"),
        clock: Literal["wall", "processor"] = "wall",
        results: Path | None = None,
        out: Path | None = None,
    ) -> int:
        """Time pairs of work in turns and show the ratios: ours over the reference, below 1 is faster.

        Args:
            models: models of open_clip, with random weights.
            batch: images a step.
            rounds: how often each pair is timed.
            only: of steps, overhead, teacher, head, eval, chunks, data, growth, sizes, memory and, for minutes, large.
            clock: wall, or the processor's time for one thread, on a machine that others use, too.
            results: a JSON file that keeps what was measured; the page shows what earlier runs have left in it, too.
            out: a Markdown page to write.
        """
        import torch

        from studies.bench.page import HEADER, cells, page
        from studies.bench.records import read, section, write
        from studies.bench.table import SETS
        from studies.bench.turns import Turns

        for name in only:
            if name not in SETS:
                raise unknown("benchmark", name, SETS)
        at_least(2, batch=batch)
        at_least(1, rounds=rounds)
        if clock == "processor":
            torch.set_num_threads(1)  # threads that wait for each other would be counted
        turns = Turns(rounds, CLOCKS[clock][0])
        sections = read(results) if results is not None else {}
        measured: set[str] = set()
        for model, name in ((model, name) for model in models for name in only):
            title = ONCE.get(name, f"{model}, batch {batch}: {name}")
            if title in measured:
                continue
            with console.status(title):
                sections[title] = section(SETS[name](model, batch, turns), rounds, CLOCKS[clock][1])
            measured.add(title)
            show_table(title, HEADER, [cells(row) for row in sections[title].rows])
            if results is not None:  # at once: whatever stops the next one
                write(results, sections)
        if out is not None:
            write_text(out, page(sections))
            console.print(f"written to {out}", highlight=False, markup=False)
        return 0

    return tyro.cli(bench, args=arguments, prog="tracer bench")
