"""The figures: the frontiers of all arms on each task, and what a moving teacher adds to a static one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from studies.emojishift.frontiers import COLOURS as EMOJI_COLOURS
from studies.figure import BLACK, GREEN, blank
from studies.photoshift.rows import ZERO_SHOT, PhotoRow
from studies.photoshift.tasks import MAIN_TASKS, TASKS
from tracer.core.metrics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {name: colour for name, colour in EMOJI_COLOURS.items() if name != "CaRot"} | {"Lipsum-FT": GREEN}
MARKS = dict(zip(COLOURS, "sDv^hoP", strict=True))


def frontiers(rows: Sequence[PhotoRow]) -> Figure:
    """One panel for each task: every setting and α as a mark, the mean over seeds; a line joins an arm's frontier."""
    tasks = [name for name in MAIN_TASKS if any(row.study == name for row in rows)]
    figure = blank(width=5.2 * min(2, len(tasks)), height=0.7 + 4 * -(-len(tasks) // 2))
    panels = figure.subplots(-(-len(tasks) // 2), min(2, len(tasks)), squeeze=False).flatten()
    for axes, task in zip(panels, tasks, strict=False):
        _draw(axes, [row for row in rows if row.study == task])
        axes.set(title=task, xlabel="task accuracy (%)", ylabel="accuracy on what should be kept (%)")
        axes.grid(alpha=0.3)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def moving_teachers(gains: Mapping[str, Mapping[str, Interval]]) -> Figure:
    """What the areas of moving teachers have more than a static one's: by pictures, steps, start and task."""
    by_pictures = {str(TASKS[name].per_class): name for name in ("few animals", "animals", "many animals")}
    by_steps = {str(TASKS[name].steps): name for name in ("brief animals", "animals", "long animals")}
    by_start = {
        str(TASKS[name].names): name for name in ("animals, 25 names", "animals, 100 names", "animals")
    }
    by_task = {name: name for name in MAIN_TASKS}
    figure = blank(width=11, height=3.8)
    panels = figure.subplots(1, 4, sharey=True, width_ratios=(1, 1, 1, 2))
    titles = ("by photographs a class", "by steps", "by names at the start", "by task")
    for axes, title, places in zip(panels, titles, (by_pictures, by_steps, by_start, by_task), strict=True):
        drawn = {label: gains[name] for label, name in places.items() if name in gains}
        for shift, arm in ((-0.1, "EMA"), (0.1, "TRACER")):
            low, middle, high = (
                100 * np.array([each[arm][end] for each in drawn.values()]) for end in range(3)
            )
            axes.errorbar(
                np.arange(len(drawn)) + shift,
                middle,
                [middle - low, high - middle],
                fmt=MARKS[arm],
                color=COLOURS[arm],
                label=arm,
            )
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.set_xticks(np.arange(len(drawn)), [label.replace(" ", "\n") for label in drawn])
        axes.set(title=title, xlim=(-0.5, max(len(drawn), 1) - 0.5))
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("area, more than a static teacher's (points)")
    panels[0].legend()
    return figure


def _draw(axes: Axes, rows: Sequence[PhotoRow]) -> None:
    for name, colour in COLOURS.items():
        points = mean_points([row for row in rows if row.arm == name])
        if not points:
            continue
        finetuned = [place for (_, _, alpha), place in points.items() if alpha == 1]
        mixed = [place for (_, _, alpha), place in points.items() if 0 < alpha < 1]
        if mixed:
            axes.plot(*zip(*mixed, strict=True), ".", color=colour, alpha=0.6)
        axes.plot(*zip(*finetuned, strict=True), MARKS[name], color=colour, label=name, linestyle="")
        axes.plot(*zip(*pareto(list(points.values())), strict=True), "-", color=colour, linewidth=1)
    start = mean_points([row for row in rows if row.arm == ZERO_SHOT])
    if start:
        axes.plot(*next(iter(start.values())), "*", color=BLACK, markersize=12, label=ZERO_SHOT, linestyle="")


def mean_points(
    rows: Sequence[PhotoRow],
) -> dict[tuple[float, float | None, float], tuple[float, float]]:
    """Task accuracy and accuracy on what is kept, in %, mean over seeds, by rate, λ and α."""
    values: dict[tuple[float, float | None, float], list[tuple[float, float]]] = {}
    for row in rows:
        for alpha in row.alphas:
            place = float(row.right("id", alpha).mean()), float(row.right("retain", alpha).mean())
            values.setdefault((row.rate, row.strength, alpha), []).append(place)
    means = {key: 100 * np.mean(each, axis=0) for key, each in values.items()}
    return {key: (float(each[0]), float(each[1])) for key, each in means.items()}


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other surpasses in both, from the most accurate on the task to the one that keeps most."""
    front: list[tuple[float, float]] = []
    for task, kept in sorted(points, reverse=True):
        if not front or kept > front[-1][1]:
            front.append((task, kept))
    return front
