"""Compare `tracer fit` with single methods: `python -m studies.fit.command`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import tyro

from studies.fit.compare import Reached, Scored, compared, promises, worse_than_pretrained
from studies.fit.measure import measured
from studies.fit.tasks import TASKS
from tracer.api.terminal import say
from tracer.core.markdown import markdown_table
from tracer.core.metrics import t_interval
from tracer.data.scan_cache import cache_folder
from tracer.evaluation import summary
from tracer.storage.atomic import write_json, write_text

HERE = Path(__file__).parent
LARGE = ("CIFAR-10: vehicles", "digits: group")  # with a grid of a hundred runs, for the first seed
HEAD = ("accuracy", "kept", "area", "task regret", "kept regret", "point regret")


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
    summary.KNOWN_NAMES = summary.KNOWN_NAMES[
        :24
    ]  # agreement on ImageNet's names is not used here, and takes long
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


def table(known: list[dict], large: list[dict] = []) -> str:  # noqa: B006  (never changed)
    """All tasks and seeds together, then the goals, then each task."""
    ways = compared(known)
    names = list(dict.fromkeys(name for each in ways for name in each))
    rows = [_summary(name, [each[name] for each in ways if name in each]) for name in names]
    head = ["way", "runs", *(f"{each}: median" for each in HEAD[-3:]), *(f"{each}: mean" for each in HEAD)]
    noisy = [each["fit"] for each in ways]
    hindsight = [median(100 * value for value in values) for values in list(zip(*noisy, strict=True))[-2:]]
    parts = [
        "In %; means over tasks and seeds with 95 % intervals (Student's t).",
        "",
        markdown_table(head, rows),
        "",
        f"Worse than the pretrained model on both axes beyond noise: {worse_than_pretrained(known)} of {len(known)}. "
        f"Median regret of fit with the best chosen on the images that score it: {hindsight[0]:.1f} on the task, "
        f"{hindsight[1]:.1f} kept.",
        "",
        markdown_table(
            ["--keep", "runs", "kept on test data", "left the pretrained model"],
            [[f"{keep:g}", *map(str, each)] for keep, each in promises(known).items()],
        ),
        "",
    ]
    for result in large:
        parts += [
            f"{result['task']}: the search has {100 * (Scored(result).coverage() or 0):.1f} % of the area of a grid "
            f"of {result['grid']} runs.",
            "",
        ]
    for result, each in zip(known, ways, strict=True):
        parts += [
            f"{result['task']}, seed {result['seed']}: {sum(result['n'])} test images, {sum(result['m'])} retained, "
            f"{result['held_out']} held out.",
            "",
            markdown_table(
                ["way", *HEAD],
                [[name, *(f"{100 * value:.1f}" for value in own[: len(HEAD)])] for name, own in each.items()],
            ),
            "",
        ]
    return "\n".join(parts)


def _summary(name: str, own: list[Reached]) -> list[str]:
    columns = [[100 * value for value in values] for values in zip(*own, strict=True)][: len(HEAD)]
    means = [t_interval(values) for values in columns]
    medians = [f"{median(values):.1f}" for values in columns[-3:]]
    return [name, str(len(own)), *medians, *(f"{each.value:.1f} ± {each.half_width:.1f}" for each in means)]


if __name__ == "__main__":
    tyro.cli(main)
