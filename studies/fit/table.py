"""The table of the study: every way over all tasks and seeds, the goals, and each task."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from statistics import mean, median
from typing import Any

import torch

from studies.emojishift.compare import seed_error
from studies.fit.compare import Reached, Scored, promises
from tracer.core.markdown import markdown_table
from tracer.core.metrics import t_interval, wilson_interval
from tracer.core.metrics.intervals import t_quantile
from tracer.core.metrics.resampling import draws

HEAD = ("accuracy", "kept", "area", "front", "task regret", "kept regret", "point regret")
REGRETS = slice(4, 7)
AREA = HEAD.index("area")
TEXT = """\
In %. Medians are over tasks and seeds, with the 95 % range of 2 000 draws of tasks. Means are over tasks, of the means
over their seeds: ± is Student's interval over tasks, as for tasks that are not here; [±] that over seeds, for these
tasks. "area less fit's" is paired by task and seed.
"""
CHANGED = ("digits: colour", "digits: group", "digits: value", "Fashion-MNIST", "CIFAR-10: vehicles")

Runs = Sequence[tuple[str, float]]  # task and value, for every seed


def table(known: Sequence[dict[str, Any]], large: Sequence[dict[str, Any]] = ()) -> str:
    """All tasks and seeds together, then the goals, then each task."""
    ways = [Scored(result).compared() for result in known]
    tasks = [result["task"] for result in known]
    unseen = [result["seed"] > 0 or result["task"] not in CHANGED for result in known]
    hindsight = [median(100 * values[-k] for values in (each["fit"] for each in ways)) for k in (2, 1)]
    worse = sum(Scored(result).worse for result in known)
    parts = [
        TEXT,
        _overall(tasks, ways),
        "",
        "The same without the five runs after which the rules were changed:",
        "",
        _overall([*compress(tasks, unseen)], [*compress(ways, unseen)]),
        "",
        f"Worse than the pretrained model on both axes beyond noise: {_share(worse, len(known))}. "
        f"Median regret of fit with the best chosen on the images that score it: {hindsight[0]:.1f} on the task, "
        f"{hindsight[1]:.1f} kept.",
        "",
        markdown_table(
            ["--keep", "kept on test data", "left the pretrained model", "changed a tower"],
            [
                [f"{keep:g}", _share(each.held, each.runs), str(each.moved), str(each.trained)]
                for keep, each in promises(known).items()
            ],
        ),
        "",
        f"All of them: {_share(*(sum(each[k] for each in promises(known).values()) for k in (1, 0)))}.",
        "",
    ]
    for result in large:
        parts += [
            f"{result['task']}, seed {result['seed']}: the mixtures of the search have "
            f"{100 * Scored(result).coverage():.1f} % of the area of those of a grid of {result['grid']} runs.",
            "",
        ]
    for result, each in zip(known, ways, strict=True):
        parts += [
            f"{result['task']}, seed {result['seed']}: {sum(result['n'])} test images, {sum(result['m'])} retained, of "
            f"which the pretrained model knows {sum(result['before']['kept'])}; {result['held_out']} held out.",
            "",
            markdown_table(
                ["way", *HEAD],
                [[name, *(f"{100 * value:.1f}" for value in own[: len(HEAD)])] for name, own in each.items()],
            ),
            "",
        ]
    return "\n".join(parts)


def _overall(tasks: Sequence[str], ways: Sequence[dict[str, Reached]]) -> str:
    names = list(dict.fromkeys(name for each in ways for name in each))
    head = ["way", "runs", *(f"{each}: median" for each in HEAD[REGRETS]), *HEAD, "area less fit's"]
    return markdown_table(head, [_summary(name, tasks, ways) for name in names])


def _summary(name: str, tasks: Sequence[str], ways: Sequence[dict[str, Reached]]) -> list[str]:
    own = [(task, each[name], each["fit"]) for task, each in zip(tasks, ways, strict=True) if name in each]
    columns = [[(task, 100 * each[k]) for task, each, _ in own] for k in range(len(HEAD))]
    gap = [(task, 100 * (each[AREA] - fit[AREA])) for task, each, fit in own]
    medians = [_median(runs) for runs in columns[REGRETS]]
    return [name, str(len(own)), *medians, *map(_mean, columns), _mean(gap)]


def _by_task(runs: Runs) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for task, value in runs:
        groups.setdefault(task, []).append(value)
    return groups


def _median(runs: Runs) -> str:
    """The median over runs, with its interval over draws of whole tasks."""
    groups, value = list(_by_task(runs).values()), median(value for _, value in runs)
    drawn = torch.cat([*draws(len(groups), 2000, 0)]).tolist()
    scores = torch.tensor([median([value for task in draw for value in groups[task]]) for draw in drawn])
    low, high = torch.quantile(scores, torch.tensor([0.025, 0.975])).tolist()
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def _mean(runs: Runs) -> str:
    """The mean over tasks of the means over seeds, ± over tasks, and over seeds where a task has several."""
    over_tasks = t_interval(mean(values) for values in _by_task(runs).values())
    error, free = seed_error(runs)
    seeds = f" [± {t_quantile(free) * error:.1f}]" if free else ""
    return f"{over_tasks.value:.1f} ± {over_tasks.half_width:.1f}{seeds}"


def _share(count: int, total: int) -> str:
    low, value, high = wilson_interval(count / total, total)
    return f"{count} of {total}, {100 * value:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
