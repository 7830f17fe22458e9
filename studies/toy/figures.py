"""Figures of the toy study: the paper's Figure 3 (a, b, c), the frontier over λ, and the teachers over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from studies.figure import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, blank
from studies.toy.frontier import Point, best, curve, front, points, star
from studies.toy.published import PROGRESS, TEACHING, reported
from studies.toy.strategies import TITLES
from studies.toy.study import Results, Task
from studies.toy.table import NOTES
from studies.toy.teaching import Curves
from tracer.core.metrics import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "pretrained": BLACK,
    "direct": RED,
    "l2": ORANGE,
    "static": BLUE,
    "ema": SKY,
    "dynamic": GREEN,
    "composite": BLACK,
    "tracer": PURPLE,
    "slow": SKY,
}
MARKS = dict(zip(COLOURS, "*sD^voXPh", strict=True))
# A teacher has the same style in all figures; colours repeat only where no figure shows both.
TEACHERS: dict[str, tuple[str, Any]] = {
    "EMA, every step": (RED, "-"),
    "EMA, every 2 % of T": (ORANGE, "--"),
    "WMA β = 0.2": (GREEN, "-."),
    "WMA β = 0.5": (BLUE, "-"),
    "WMA β = 1": (PURPLE, (0, (6, 2, 1, 2, 1, 2))),
    "WMA β = 1.5": (SKY, (0, (2, 1))),
    "WMA β = 0.5, every 2 % of T, clock: progress": (GREY, "-."),
    "WMA β = 0.5, every 2 % of T, clock: updates": (BLACK, ":"),
    "WMA β = 0.5, every 20 % of T, clock: progress": (ORANGE, (0, (8, 2))),
    "WMA β = 0.5, every 20 % of T, clock: updates": (RED, (0, (4, 1, 1, 1))),
}
NEW = {"colour": "naming the colour", "group": "naming the group", "digit": "reading painted digits"}


def outcome(results: Results) -> Figure:
    """Figure 3: both tasks, forgetting, and the trade-off, each strategy at its own best λ."""
    figure = blank(width=13.2, height=4.6)
    both, forgetting, trade = figure.subplots(1, 3)
    averaged = points(results.rows)
    chosen = [best(averaged, name) for name in COLOURS if curve(averaged, name)]
    failed = {point.strategy for point in chosen if star(averaged, point) == "(*)"}
    tuned = [point for point in chosen if point.strategy != "pretrained"]
    _draw_both(both, chosen, results.task)
    _name(both, [_label(point, "\n", failed) for point in chosen])
    _draw_forgetting(forgetting, tuned, results.task)
    _name(forgetting, [_label(point, "\n", failed) for point in tuned])
    _draw_trade(trade, {_label(point, " ", failed): point for point in chosen}, NEW[results.task])
    if failed:
        figure.supxlabel(NOTES["(*)"], fontsize=9)
    return figure


def _draw_both(axes: Axes, chosen: Sequence[Point], task: Task) -> None:
    place = np.arange(len(chosen))
    for shift, measure, colour, label in (
        (-0.2, "original", BLUE, "grey digits"),
        (0.2, "task", ORANGE, NEW[task]),
    ):
        values = [100 * point.mean(measure) for point in chosen]
        errors = [_error(point.spread[measure]) for point in chosen]
        axes.bar(place + shift, values, 0.38, yerr=errors, color=colour, label=label, capsize=2)
        for x, point in zip(place, chosen, strict=True):
            paper = reported(task, point.strategy)
            value = paper and getattr(paper, measure)
            if value is not None:
                axes.plot(x + shift, 100 * value, "_", color=BLACK, markersize=15, markeredgewidth=2)
    _name_paper(axes, task)
    axes.set(title="(a) Old and new task", ylabel="accuracy (%)", ylim=(0, 128), yticks=range(0, 101, 20))
    axes.legend(loc="upper center", ncols=3, fontsize=8, columnspacing=1)


def _draw_forgetting(axes: Axes, tuned: Sequence[Point], task: Task) -> None:
    """Mean and spread on the left of each strategy's tick, the paper's number on the right."""
    for x, point in enumerate(tuned):
        value, error = 100 * point.mean("forgotten"), _error(point.spread["forgotten"])
        axes.errorbar(x - 0.15, value, yerr=error, **_style(point.strategy), markersize=8, capsize=3)
        axes.annotate(
            f"{value:.1f}",
            (x - 0.15, value + error),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
        if paper := reported(task, point.strategy):
            axes.plot(x + 0.25, 100 * paper.forgotten, "_", color=BLACK, markersize=12, markeredgewidth=2)
    _name_paper(axes, task)
    axes.set(title="(b) Forgetting", ylabel="accuracy lost on grey digits (points)")
    axes.margins(x=0.08, y=0.12)
    _symlog(axes, "y")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper right", fontsize=8)


def _name_paper(axes: Axes, task: Task) -> None:
    """A legend entry for the paper's numbers, where it has some."""
    if reported(task, "direct"):
        axes.plot([], [], "_", color=BLACK, markersize=12, markeredgewidth=2, label="paper")


def _draw_trade(axes: Axes, chosen: Mapping[str, Point], new: str) -> None:
    for label, point in chosen.items():
        _draw_curve(axes, [point], "forgotten", label)
    axes.set(title="(c) Trade-off: best is upper right", xlabel="accuracy lost on grey digits (points)")
    axes.set_ylabel(f"missed in {new} (points)")
    _invert(axes, "x", "y")
    axes.legend(loc="best", fontsize=8)


def _invert(axes: Axes, *losses: Literal["x", "y"]) -> None:
    """Invert the axes of losses, so that better is to the right and up."""
    axes.margins(0.06)
    for which in losses:
        _symlog(axes, which)
        (axes.xaxis if which == "x" else axes.yaxis).set_inverted(True)
    if "y" in losses:
        # A spread may reach above zero, an accuracy cannot; leave room below the largest loss.
        axes.set_ylim(bottom=1.3 * axes.dataLim.y1, top=-0.2)


def _symlog(axes: Axes, which: Literal["x", "y"]) -> None:
    """Logarithmic above one point, since losses range from tenths of a point to fifty points."""
    from matplotlib.ticker import FixedLocator, NullLocator

    (axes.set_xscale if which == "x" else axes.set_yscale)("symlog", linthresh=1, linscale=0.8)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator([-1, 0, 0.5, 1, 2, 5, 10, 20, 50, 100]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def _name(axes: Axes, labels: Sequence[str]) -> None:
    """Slanted tick labels that end below their tick, so that two-line labels do not touch."""
    axes.set_xticks(
        range(len(labels)), labels, rotation=40, ha="right", va="center", ma="right", rotation_mode="anchor"
    )
    axes.tick_params(axis="x", labelsize=8, pad=8)


def _label(point: Point, between: str, failed: Collection[str] = ()) -> str:
    title = TITLES[point.strategy]
    if point.strength is None:
        return title
    return f"{title}{between}λ = {point.strength:g}{' (*)' if point.strategy in failed else ''}"


def _error(spread: Spread) -> float:
    return 100 * (spread.std or 0.0)


def frontier(results: Results) -> Figure:
    """New task against retained accuracy at every λ: on grey digits, and on colour-flipped ones."""
    figure = blank(width=13.2, height=6.4)
    averaged = points(results.rows)
    original, flipped = figure.subplots(1, 2, sharey=True)
    for axes, measure, better in ((original, "forgotten", "original"), (flipped, "flipped", "flipped")):
        for name in COLOURS:
            _draw_curve(axes, curve(averaged, name), measure, TITLES[name])
        unbeaten = sorted(front(averaged, better), key=lambda point: point.mean(better))
        x, y = _places(unbeaten, measure)
        axes.step(x, y, where="pre", color=GREY, linewidth=6, alpha=0.25, zorder=0, label="not beaten by any")
        axes.set_ylabel(f"missed in {NEW[results.task]} (points)")
    original.set(xlabel="accuracy lost on grey digits (points)")
    flipped.set(xlabel="digit accuracy on colour-flipped digits (%)")
    _invert(original, "x", "y")
    _invert(flipped)
    original.legend(loc="best", fontsize=9)
    figure.suptitle(
        "Best is upper right. Hollow: strongest λ of each strategy. Faint: standard deviation over seeds",
        fontsize=10,
    )
    return figure


def _draw_curve(axes: Axes, along: Sequence[Point], measure: str, label: str) -> None:
    """A strategy from its smallest λ to its largest, whose mark is hollow so that it hides no other."""
    if not along:
        return
    style = _style(along[0].strategy)
    x, y = _places(along, measure)
    xerr, yerr = ([_error(point.spread[each]) for point in along] for each in (measure, "task"))
    dash = "--" if along[0].strategy == "composite" else "-"  # it lies close to others
    line = dash if len(along) > 1 else "none"
    axes.plot(x, y, **style, linestyle=line, markersize=6, linewidth=1.3, label=label)
    if len(along) > 1:
        axes.plot(x[-1], y[-1], **style, markersize=13, markerfacecolor="none", markeredgewidth=1.6)
    axes.errorbar(x, y, yerr=yerr, xerr=xerr, color=style["color"], fmt="none", elinewidth=0.7, alpha=0.35)


def _places(along: Sequence[Point], measure: str) -> tuple[list[float], list[float]]:
    """Coordinates in per cent: a measure, and the error on the new task."""
    return [100 * point.mean(measure) for point in along], [100 * (1 - point.mean("task")) for point in along]


def _style(strategy: str) -> dict[str, Any]:
    return {"color": COLOURS[strategy], "marker": MARKS[strategy]}


def teaching(runs: Mapping[str, Curves], title: str) -> Figure:
    """KL, entropy, confidence, agreement and weight gap of teacher and student against training progress."""
    figure = blank(width=13.2, height=6.8)
    panels = figure.subplots(2, 3).flat
    named = {
        "kl": "KL of teacher and student (nats)",
        "teacher_entropy": "entropy of the teacher (nats)",
        "teacher_confidence": "confidence of the teacher",
        "agreement": "agreement of teacher and student\n(dot: complete from here on)",
    }
    for axes, (measure, label) in zip(panels, [*named.items(), ("gap", "weight gap ‖θ − ψ‖")], strict=False):
        axes.set(xlabel="training progress (% of T)", ylabel=label, xlim=(-3, 103))
        if measure == "agreement":
            _draw_agreement(axes, runs)
            continue
        for name, run in runs.items():
            time = run.gap_progress if measure == "gap" else run.progress
            values = run.gap if measure == "gap" else run.smooth(measure)
            axes.plot([100 * t for t in time], values, **_line_style(name))
        axes.set_yscale("log" if measure == "kl" else "linear")
    legend = figure.axes[-1]
    legend.axis("off")
    for name in runs:
        legend.plot([], [], **_line_style(name), label=name)
    legend.legend(loc="center left", fontsize=10, frameon=False, title=title)
    return figure


def _draw_agreement(axes: Axes, runs: Mapping[str, Curves]) -> None:
    """Each curve ends where agreement stays complete, since the curves would hide each other from there on."""
    dots: Counter[float] = Counter()
    for name, run in runs.items():
        values, time = run.smooth("agreement"), [100 * t for t in run.progress]
        end = 1 + max((i for i, value in enumerate(values) if value < 1), default=-1)
        axes.plot(time[: end + 1], values[: end + 1], **_line_style(name))
        if end < len(values):
            size = 7 / 2 ** dots[time[end]]  # a smaller dot on a larger one leaves a ring visible
            axes.plot(time[end], values[end], "o", color=TEACHERS[name][0], markersize=size)
            dots[time[end]] += 1


def shapes(runs: Mapping[str, Curves]) -> Figure:
    """KL as a share of its peak, in these runs and in the released logs on ImageNet."""
    figure = blank(width=11.2, height=4.8)
    here, there = figure.subplots(1, 2, sharex=True, sharey=True)
    for name, values in TEACHING.items():
        if name in runs:
            run = runs[name]
            smooth = run.smooth("kl")
            here.plot([100 * t for t in run.progress], np.array(smooth) / max(smooth), **_line_style(name))
        there.plot(
            100 * np.array(PROGRESS),
            np.array(values) / max(values),
            marker="o",
            **_line_style(name),
            label=name,
        )
    here.set(title="this study", ylim=(0, 1.05))
    there.set(title="released logs, ImageNet")
    for axes in (here, there):
        axes.set(xlabel="training progress (% of T)", ylabel="KL of teacher and student / its peak")
    there.legend(loc="upper right", fontsize=8)
    return figure


def _line_style(teacher: str) -> dict[str, Any]:
    colour, dash = TEACHERS[teacher]
    return {"color": colour, "linestyle": dash}


def teachers(runs: Mapping[str, Curves]) -> dict[str, Figure]:
    """All figures of the teachers, by name: kernels, intervals and clocks, and the shape beside the paper's."""
    sparse = {name: run for name, run in runs.items() if "clock" in name}
    plain = {name: run for name, run in runs.items() if name not in sparse}
    default = {name: run for name, run in runs.items() if name == "WMA β = 0.5"}
    return {
        "kernels": teaching(plain, "teacher, moving every step\nunless said otherwise"),
        "clocks": teaching({**default, **sparse}, "interval and clock"),
        "shapes": shapes(runs),
    }
