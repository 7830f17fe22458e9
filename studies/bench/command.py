"""Time and memory against released-style code: `tracer bench`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Literal

from tracer.api.terminal import console, show_table
from tracer.cli.flags import cli
from tracer.core.errors import at_least, unknown
from tracer.storage.atomic import write_text

ONCE = {"data": "Data", "sizes": "Parameters"}  # independent of the model
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
        """Time pairs of work alternately and print the ratios, ours over the reference: below 1 ours is faster.

        Args:
            models: open_clip models, or EfficientNet-Lite0-MiniLM; with random weights.
            batch: images per step.
            rounds: how often each pair is timed.
            only: any of steps, adapters, last, convolutions, texts, overhead, teacher, cheaper (teachers), head, eval,
                chunks, data, growth, sizes, memory, large (slow).
            clock: wall; or processor, the CPU time of one thread, for a machine with other work.
            results: JSON file of the results; sections that are not measured now keep their earlier results.
            out: Markdown page to write, of all sections in the results.
        """
        import torch

        from studies.bench import pair
        from studies.bench.page import HEADER, cells, page
        from studies.bench.records import read, section, write
        from studies.bench.table import SETS
        from studies.bench.timing import Timer

        for name in only:
            if name not in SETS:
                raise unknown("benchmark", name, SETS)
        at_least(2, batch=batch)
        at_least(1, rounds=rounds)
        if clock == "processor":
            torch.set_num_threads(1)  # waiting threads would be counted
        timer = Timer(rounds, CLOCKS[clock][0])
        sections = read(results) if results is not None else {}
        measured: set[str] = set()
        for model, name in ((model, name) for model in models for name in only):
            title = ONCE.get(name, f"{model}, batch {batch}: {name}")
            if title in measured:
                continue
            with console.status(title), TemporaryDirectory() as folder:
                if model == pair.NAME:
                    pair.register(Path(folder))
                sections[title] = section(SETS[name](model, batch, timer), rounds, CLOCKS[clock][1])
            measured.add(title)
            show_table(title, HEADER, [cells(row) for row in sections[title].rows])
            if results is not None:  # after each section, in case the next one fails
                write(results, sections)
        if out is not None:
            write_text(out, page(sections))
            console.print(f"written to {out}", highlight=False, markup=False)
        return 0

    return cli(bench, arguments, "tracer bench")
