"""Compare `tracer fit` with single methods: `python -m studies.fit.command`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import tyro

from studies.fit.compare import promises, reached
from studies.fit.measure import measured
from studies.fit.tasks import TASKS
from tracer.core.markdown import markdown_table
from tracer.storage.atomic import write_json, write_text
from tracer.terminal import say

HERE = Path(__file__).parent


def main(
    tasks: tuple[str, ...] = tuple(TASKS),
    seeds: int = 1,
    home: Path = Path("runs/fit"),
    results: Path = HERE / "results",
    redraw: bool = False,
) -> None:
    """Run the search and the grid for every task and seed that has no result yet, then write the table.

    Args:
        tasks: names of tasks.
        seeds: seeds, or folds, of each task.
        home: folder of pretrained models, searches and runs; what is finished there is not done again.
        results: folder of the result files.
        redraw: run nothing, write the table from the result files.
    """
    for seed in range(seeds):
        for number, name in enumerate(TASKS):
            file = results / f"{number}-{seed}.json"
            if name in tasks and not file.exists() and not redraw:
                say(f"{name}, seed {seed}")
                write_json(file, measured(name, seed, home, say))
                _write(results)
    _write(results)


def _write(results: Path) -> None:
    known = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*-*.json"))]
    if known:
        write_text(results / "table.md", table(known))


def table(known: list[dict]) -> str:
    """Medians over tasks and seeds, then each task, then the promises of --keep."""
    ways = [reached(result) for result in known]
    names = list(dict.fromkeys(name for each in ways for name in each))
    head = ["way", "runs", "accuracy", "kept", "area", "task regret", "kept regret"]
    rows = []
    for name in names:
        own = [each[name] for each in ways if name in each]
        medians = [median(values) for values in zip(*own, strict=True)]
        rows.append([name, str(len(own)), *(f"{100 * value:.1f}" for value in medians)])
    parts = ["Medians over all tasks and seeds, in %.", "", markdown_table(head, rows), ""]
    for result, each in zip(known, ways, strict=True):
        before = result["before"]
        parts += [
            f"{result['task']}, seed {result['seed']}: {before['n']} test images, {before['m']} retained, "
            f"{result['held_out']} held out.",
            "",
            markdown_table(
                ["way", *head[2:]],
                [[name, *(f"{100 * value:.1f}" for value in own)] for name, own in each.items()],
            ),
            "",
        ]
    rows = [[f"{keep:g}", *map(str, counts)] for keep, counts in promises(known).items()]
    parts += [markdown_table(["--keep", "kept", "clearly broken", "left the start"], rows), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    tyro.cli(main)
