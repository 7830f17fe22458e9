"""The toy study drawn: the paper's Figure 3 (a, b, c), the frontier over λ, and the teachers over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
NEW = {"colour": "naming the colour", "group": "naming the group (0–4, 5–9)"}


def outcome(found: Found) -> Figure:
    """Figure 3: both tasks, forgetting, and the trade-off, each strategy at its own best λ."""
    figure = blank(width=13.2, height=4.6)
    both, forgetting, trade = figure.subplots(1, 3)
    averaged = points(found.rows)
    chosen = [best(averaged, name) for name in COLOURS if curve(averaged, name)]
    _draw_both(both, chosen, NEW[found.task])
    _draw_forgetting(forgetting, chosen)
    _draw_trade(trade, chosen, found)
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
    tuned = [point for point in chosen if point.strategy != "pretrained"]
    for x, point in enumerate(tuned):
        value, told = 100 * point.mean("forgotten"), PUBLISHED.get(point.strategy)
        axes.bar(
            x, value, 0.6, yerr=_error(point.spread["forgotten"]), color=COLOURS[point.strategy], capsize=3
        )
        axes.annotate(
            f"{value:.1f}", (x, max(value, 0)), xytext=(4, 4), textcoords="offset points", fontsize=9
        )
        if told:
            axes.plot(x, 100 * told.forgotten, "_", color=BLACK, markersize=24, markeredgewidth=2)
    axes.plot([], [], "_", color=BLACK, markersize=12, markeredgewidth=2, label="paper")
    axes.axhline(0, color=BLACK, linewidth=0.8)
    _name(axes, tuned)
    axes.set(title="(b) Forgetting", ylabel="accuracy lost on grey digits (points)")
    axes.margins(y=0.12)
    axes.legend(loc="upper right", fontsize=8)


def _draw_trade(axes: Axes, chosen: Sequence[Point], found: Found) -> None:
    for point in chosen:
        colour, mark = COLOURS[point.strategy], MARKS[point.strategy]
        same = [r for r in found.rows if (r.strategy, r.strength) == (point.strategy, point.strength)]
        axes.plot(
            [100 * r.original for r in same], [100 * r.task for r in same], ".", color=colour, alpha=0.6
        )
        axes.plot(
            100 * point.mean("original"),
            100 * point.mean("task"),
            mark,
            color=colour,
            markersize=9,
            label=_label(point, " "),
            linestyle="none",
        )
    axes.set(title="(c) Trade-off (dots: seeds)", xlabel="accuracy on grey digits (%)")
    axes.set_ylabel(f"accuracy, {NEW[found.task]} (%)")
    axes.legend(loc="lower left", fontsize=8)
    axes.margins(0.08)


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
    figure = blank(width=13.2, height=5.2)
    averaged = points(found.rows)
    kept = {"original": "grey digits", "flipped": "colour-flipped digits"}
    for axes, (measure, title) in zip(figure.subplots(1, 2, sharey=True), kept.items(), strict=True):
        for name in COLOURS:
            _draw_curve(axes, curve(averaged, name), measure)
        unbeaten = sorted(front(averaged, measure), key=lambda point: point.mean(measure))
        axes.step(
            [100 * point.mean(measure) for point in unbeaten],
            [100 * point.mean("task") for point in unbeaten],
            where="pre",
            color=GREY,
            linewidth=5,
            alpha=0.25,
            label="not beaten by any",
        )
        axes.set(xlabel=f"digit accuracy on {title} (%)")
        axes.margins(0.06)
    left = figure.axes[0]
    left.set_ylabel(f"accuracy, {NEW[found.task]} (%)")
    left.legend(loc="lower left", fontsize=9)
    figure.suptitle(
        "Large marks: strongest λ of each strategy. Bars: standard deviation over seeds", fontsize=10
    )
    return figure


def _draw_curve(axes: Axes, along: Sequence[Point], measure: str) -> None:
    if not along:
        return
    name = along[0].strategy
    x, y = ([100 * point.mean(each) for point in along] for each in (measure, "task"))
    errors = {f"{a}err": [_error(p.spread[m]) for p in along] for a, m in (("x", measure), ("y", "task"))}
    style: dict[str, Any] = {"color": COLOURS[name], "marker": MARKS[name]}
    axes.errorbar(x, y, **errors, **style, markersize=5, elinewidth=0.6, linewidth=1.3, label=TITLES[name])
    axes.plot(x[-1], y[-1], **style, markersize=10)


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
    here.set(title="this study", ylabel="KL of teacher and student / its peak", ylim=(0, 1.05))
    there.set(title="released logs, ImageNet")
    for axes in (here, there):
        axes.set_xlabel("training progress (% of T)")
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
