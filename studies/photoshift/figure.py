"""The figure: the frontiers of all arms on each task, and what a moving teacher adds to a static one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from studies.emojishift.frontiers import COLOURS as EMOJI_COLOURS
from studies.figure import BLACK, GREEN, blank
from studies.photoshift.rows import ZERO_SHOT, PhotoRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {name: colour for name, colour in EMOJI_COLOURS.items() if name != "CaRot"} | {"Lipsum-FT": GREEN}
MARKS = dict(zip(COLOURS, "sDv^hoP", strict=True))


def frontiers(rows: Sequence[PhotoRow]) -> Figure:
    """One panel for each task: every setting and α as a mark, the mean over seeds; a line joins an arm's frontier."""
    tasks = list(dict.fromkeys(row.study for row in rows))
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
