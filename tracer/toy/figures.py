"""The toy study drawn: the paper's Figure 3 (a, b, c), the frontier over λ, and the teachers over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tracer.figure import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, blank
from tracer.metrics import Spread
from tracer.toy.frontier import Point, best, curve, front, points
from tracer.toy.published import PROGRESS, PUBLISHED, TEACHING
from tracer.toy.strategies import TITLES
from tracer.toy.study import Found
from tracer.toy.teaching import Curves

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
    "composite": GREY,
    "tracer": PURPLE,
}
MARKS = dict(zip(COLOURS, "*sD^vohP", strict=True))
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 1)))
NEW = {"colour": "naming the colour", "group": "naming the group"}


def outcome(found: Found) -> Figure:
    """Figure 3: both tasks, forgetting, and the trade-off, each strategy at its own best λ."""
    figure = blank(width=13.2, height=4.6)
    both, forgetting, trade = figure.subplots(1, 3)
    averaged = points(found.rows)
    chosen = [best(averaged, name) for name in COLOURS if curve(averaged, name)]
    _draw_both(both, chosen, NEW[found.task])
    _draw_forgetting(forgetting, chosen)
    _draw_trade(trade, chosen, NEW[found.task])
    return figure


def _draw_both(axes: Axes, chosen: Sequence[Point], new: str) -> None:
    place = np.arange(len(chosen))
    for shift, measure, colour, label in (
        (-0.2, "original", BLUE, "grey digits"),
        (0.2, "task", ORANGE, new),
    ):
        values = [100 * point.mean(measure) for point in chosen]
        errors = [_error(point.spread[measure]) for point in chosen]
        axes.bar(place + shift, values, 0.38, yerr=errors, color=colour, label=label, capsize=2)
        for x, point in zip(place, chosen, strict=True):
            told = PUBLISHED.get(point.strategy)
            value = told and getattr(told, measure)
            if value is not None:
                axes.plot(x + shift, 100 * value, "_", color=BLACK, markersize=15, markeredgewidth=2)
    axes.plot([], [], "_", color=BLACK, markersize=12, markeredgewidth=2, label="paper")
    _name(axes, chosen)
    axes.set(title="(a) Old and new task", ylabel="accuracy (%)", ylim=(0, 128), yticks=range(0, 101, 20))
    axes.legend(loc="upper center", ncols=3, fontsize=8, columnspacing=1)


def _draw_forgetting(axes: Axes, chosen: Sequence[Point]) -> None:
    """Mean and spread to the left of each strategy's place, the paper's number to its right."""
    tuned = [point for point in chosen if point.strategy != "pretrained"]
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
        if told := PUBLISHED.get(point.strategy):
            axes.plot(x + 0.25, 100 * told.forgotten, "_", color=BLACK, markersize=12, markeredgewidth=2)
    axes.plot([], [], "_", color=BLACK, markersize=12, markeredgewidth=2, label="paper")
    _name(axes, tuned)
    axes.set(title="(b) Forgetting", ylabel="accuracy lost on grey digits (points)")
    axes.margins(x=0.08, y=0.12)
    _stretch(axes, "y")
    axes.legend(loc="upper right", fontsize=8)


def _draw_trade(axes: Axes, chosen: Sequence[Point], new: str) -> None:
    for point in chosen:
        _draw_curve(axes, [point], "forgotten", _label(point, " "))
    axes.set(title="(c) Trade-off: best is upper right", xlabel="accuracy lost on grey digits (points)")
    axes.set_ylabel(f"missed in {new} (points)")
    _turn(axes, "x", "y")
    axes.legend(loc="best", fontsize=8)


def _turn(axes: Axes, *losses: Literal["x", "y"]) -> None:
    """Let losses shrink to the right and upwards, where gains grow."""
    axes.margins(0.06)
    for which in losses:
        _stretch(axes, which)
        (axes.xaxis if which == "x" else axes.yaxis).set_inverted(True)
    if "y" in losses:
        axes.set_ylim(top=-0.2)  # a spread may reach beyond, an accuracy cannot


def _stretch(axes: Axes, which: Literal["x", "y"]) -> None:
    """Logarithmic from one point on: most strategies lose little, and one loses half of all it had."""
    from matplotlib.ticker import FixedLocator, NullLocator

    (axes.set_xscale if which == "x" else axes.set_yscale)("symlog", linthresh=1, linscale=0.8)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator([-1, 0, 0.5, 1, 2, 5, 10, 20, 50, 100]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def _name(axes: Axes, chosen: Sequence[Point]) -> None:
    axes.set_xticks(range(len(chosen)), [_label(point, "\n") for point in chosen], rotation=40, ha="right")
    axes.tick_params(axis="x", labelsize=8)


def _label(point: Point, between: str) -> str:
    title = TITLES[point.strategy]
    return title if point.strength is None else f"{title}{between}λ = {point.strength:g}"


def _error(spread: Spread) -> float:
    return 100 * (spread.std or 0.0)


def frontier(found: Found) -> Figure:
    """New task against old knowledge at every λ: on the original digits, and where colour misleads."""
    figure = blank(width=13.2, height=6.4)
    averaged = points(found.rows)
    kept, flipped = figure.subplots(1, 2, sharey=True)
    for axes, measure, better in ((kept, "forgotten", "original"), (flipped, "flipped", "flipped")):
        for name in COLOURS:
            _draw_curve(axes, curve(averaged, name), measure, TITLES[name])
        unbeaten = sorted(front(averaged, better), key=lambda point: point.mean(better))
        x, y = _places(unbeaten, measure)
        axes.step(x, y, where="pre", color=GREY, linewidth=6, alpha=0.25, zorder=0, label="not beaten by any")
        axes.set_ylabel(f"missed in {NEW[found.task]} (points)")
    kept.set(xlabel="accuracy lost on grey digits (points)")
    flipped.set(xlabel="digit accuracy on colour-flipped digits (%)")
    _turn(kept, "x", "y")
    _turn(flipped)
    kept.legend(loc="best", fontsize=9)
    figure.suptitle(
        "Best is upper right. Hollow: strongest λ of each strategy. Faint: standard deviation over seeds",
        fontsize=10,
    )
    return figure


def _draw_curve(axes: Axes, along: Sequence[Point], measure: str, label: str) -> None:
    """A strategy from its weakest λ to its strongest, whose mark is hollow so that it hides no other."""
    if not along:
        return
    style = _style(along[0].strategy)
    x, y = _places(along, measure)
    xerr, yerr = ([_error(point.spread[each]) for point in along] for each in (measure, "task"))
    line = "-" if len(along) > 1 else "none"
    axes.plot(x, y, **style, markersize=6, linestyle=line, linewidth=1.3, label=label)
    if len(along) > 1:
        axes.plot(x[-1], y[-1], **style, markersize=13, markerfacecolor="none", markeredgewidth=1.6)
    axes.errorbar(x, y, yerr=yerr, xerr=xerr, color=style["color"], fmt="none", elinewidth=0.7, alpha=0.35)


def _places(along: Sequence[Point], measure: str) -> tuple[list[float], list[float]]:
    """Points in per cent: a measure, and what is missed of the new task."""
    return [100 * point.mean(measure) for point in along], [100 * (1 - point.mean("task")) for point in along]


def _style(strategy: str) -> dict[str, Any]:
    return {"color": COLOURS[strategy], "marker": MARKS[strategy]}


def teaching(taught: Mapping[str, Curves], title: str) -> Figure:
    """KL, entropy, confidence, agreement and weight gap of teacher and student against training progress."""
    figure = blank(width=13.2, height=6.8)
    panels = figure.subplots(2, 3).flat
    named = {
        "kl": "KL of teacher and student (nats)",
        "teacher_entropy": "entropy of the teacher (nats)",
        "teacher_confidence": "confidence of the teacher",
        "agreement": "agreement of teacher and student",
    }
    palette = (RED, BLUE, GREEN, ORANGE, PURPLE, BLACK)
    for axes, (measure, label) in zip(panels, [*named.items(), ("gap", "weight gap ‖θ − ψ‖")], strict=False):
        for run, colour, dash in zip(taught.values(), palette, DASHES, strict=False):
            time = run.gap_progress if measure == "gap" else run.progress
            values = run.gap if measure == "gap" else run.smooth(measure)
            axes.plot([100 * t for t in time], values, linestyle=dash, color=colour)
        axes.set(
            xlabel="training progress (% of T)", ylabel=label, yscale="log" if measure == "kl" else "linear"
        )
    legend = figure.axes[-1]
    legend.axis("off")
    for name, colour, dash in zip(taught, palette, DASHES, strict=False):
        legend.plot([], [], linestyle=dash, color=colour, label=name)
    legend.legend(loc="center left", fontsize=10, frameon=False, title=title)
    return figure


def shapes(taught: Mapping[str, Curves]) -> Figure:
    """KL as a share of its peak: these runs, and the paper's released logs on ImageNet."""
    figure = blank(width=11.2, height=4.8)
    here, there = figure.subplots(1, 2, sharex=True, sharey=True)
    for (name, told), colour, dash in zip(
        TEACHING.items(), (RED, ORANGE, BLUE, GREEN, PURPLE, SKY, BLACK), (*DASHES, "-"), strict=True
    ):
        if name in taught:
            run = taught[name]
            smooth = run.smooth("kl")
            here.plot(
                [100 * t for t in run.progress], np.array(smooth) / max(smooth), linestyle=dash, color=colour
            )
        there.plot(
            100 * np.array(PROGRESS),
            np.array(told) / max(told),
            "o",
            linestyle=dash,
            color=colour,
            label=name,
        )
    here.set(title="this study", ylim=(0, 1.05))
    there.set(title="released logs, ImageNet")
    for axes in (here, there):
        axes.set(xlabel="training progress (% of T)", ylabel="KL of teacher and student / its peak")
    there.legend(loc="upper right", fontsize=8)
    return figure


def teachers(taught: Mapping[str, Curves]) -> dict[str, Figure]:
    """All figures of the teachers, by name: kernels, intervals and clocks, and the shape beside the paper's."""
    sparse = {name: run for name, run in taught.items() if "clock" in name}
    plain = {name: run for name, run in taught.items() if name not in sparse}
    default = {name: run for name, run in taught.items() if name == "WMA β = 0.5"}
    return {
        "kernels": teaching(plain, "teacher, moving every step\nunless said otherwise"),
        "clocks": teaching({**default, **sparse}, "interval and clock"),
        "shapes": shapes(taught),
    }
