"""Compare `tracer fit` with single methods: `python -m studies.fit.command`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from studies.fit.measure import measured
from studies.fit.table import table
from studies.fit.tasks import TASKS
from tracer.api.terminal import say
from tracer.cli.flags import cli
from tracer.evaluation import measured as measurement
from tracer.storage.atomic import write_json, write_text
from tracer.storage.cache import cache_folder

HERE = Path(__file__).parent
LARGE = ("CIFAR-10: vehicles", "digits: group")  # with a grid of a hundred runs, for the first seed


def main(
    tasks: tuple[str, ...] = tuple(TASKS),
    seeds: int = 2,
    home: Path = Path("runs/fit"),
    cache: Path = cache_folder() / "choices",  # noqa: B008  (a constant)
    results: Path = HERE / "results",
    large: bool = False,
    redraw: bool = False,
) -> None:
    """Run the search and the grid for every task and seed that has no result yet, then write the table.

    Args:
        tasks: names of tasks.
        seeds: seeds, or folds, of each task.
        home: folder of pretrained models, searches and runs; what is finished there is not done again.
        cache: folder of downloaded data.
        results: folder of the result files.
        large: afterwards, compare the search with a grid of a hundred runs, on two tasks.
        redraw: run nothing, write the table from the result files.
    """
    # Agreement on ImageNet's names is not used here, and takes long.
    names = measurement.known_names()[:24]
    measurement.known_names = lambda: names
    for seed in range(0 if redraw else seeds):
        for number, name in enumerate(TASKS):
            file = results / f"{number}-{seed}.json"
            if name in tasks and not file.exists():
                say(f"{name}, seed {seed}")
                write_json(file, measured(name, seed, home, cache, False, say))
                _write(results)
    for name in LARGE if large else ():
        file = results / f"large-{list(TASKS).index(name)}-0.json"
        if not file.exists():
            write_json(file, measured(name, 0, home, cache, True, say))
    _write(results)


def _write(results: Path) -> None:
    def read(pattern: str) -> list[dict]:
        return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob(pattern))]

    if known := read("[0-9]*.json"):
        write_text(results / "table.md", table(known, read("large-*.json")))


if __name__ == "__main__":
    cli(main, sys.argv[1:], "python -m studies.fit.command")
