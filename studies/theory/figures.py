"""The figures of docs/theory.md; each function returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from studies.figure import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, blank
from studies.theory import flow, solve
from studies.theory.problem import Problem
from tracer.core.kernels import Beta, Early, Late, Uniform
from tracer.core.teachers import EMA, WMA, Teacher

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STATIC, STUDENT, RIDGE, DIRECT = BLUE, GREEN, ORANGE, RED
STRENGTHS = np.logspace(-3, 3, 61)


def geometry() -> Figure:
    """Where the strategies end: across the task subspace, and inside one of two dimensions."""
    figure = blank(width=10.4, height=4.9)
    across, within = figure.subplots(1, 2)
    _draw_across(across)
    _draw_within(within)
    return figure


def gaps(steps: int = 1000, strength: float = 1.0) -> Figure:
    """Teacher–student gap against time, a student under gradient flow taught by EMA and by WMA."""
    figure = blank(width=10.4, height=4.4)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    problem, pace = _spread_problem(), flow.Flow(30 / steps)
    exponential = {f"horizon {share:g} T": EMA(horizon=share) for share in (0.02, 0.1, 0.3, 1.0)}
    kernels: dict[str, Teacher] = {
        "Beta(½): both ends": WMA(Beta(0.5)),
        "Uniform": WMA(Uniform()),
        "Early(1)": WMA(Early(1)),
        "Late(2)": WMA(Late(2)),
    }
    for axes, title, policies in ((left, "EMA", exponential), (right, "WMA", kernels)):
        for (label, teacher), colour, dash in zip(policies.items(), _COLOURS, _DASHES, strict=True):
            path = flow.simulate(problem, teacher, strength=strength, steps=steps, pace=pace)
            shown = slice(1, None)  # at step 0 teacher and student are equal
            progress = 100 * np.arange(steps + 1) / steps
            axes.plot(progress[shown], path.gap[shown] / path.bias[0], dash, color=colour, label=label)
        axes.set(
            title=f"{title} teacher, λ = {strength:g}", xlabel="training progress (% of T)", yscale="log"
        )
        axes.set_ylabel(r"teacher–student gap  $\|W^t-\psi^t\|\;/\;\|W^0P-W^*\|$")
        axes.legend(loc="lower left")
    left.set_ylim(1e-4, 1)
    return figure


def contractions(steps: int = 1000, strength: float = 1.0) -> Figure:
    """The teacher's error, simulated and predicted, and the two powers of θ₀'s mass that enclose it."""
    figure = blank(width=7.2, height=4.8)
    axes = figure.subplots()
    problem, clock = _spread_problem(), np.arange(1, steps + 1)
    policies: dict[str, Teacher] = {
        "WMA Beta(½)": WMA(Beta(0.5)),
        "WMA Beta(½), every 50": WMA(Beta(0.5), every=50),
        "WMA Uniform": WMA(Uniform()),
        "WMA Late(2)": WMA(Late(2)),
        "EMA horizon 0.1 T": EMA(horizon=0.1),
    }
    marked = np.unique(np.logspace(0, np.log10(steps), 14).astype(int))
    for (label, teacher), colour, mark in zip(policies.items(), [*_COLOURS, RED], "osD^v", strict=True):
        path = flow.simulate(problem, teacher, strength=strength, steps=steps)
        axes.plot(clock, flow.contraction(path.moves, strength)[1:], color=colour, linewidth=1.2)
        axes.plot(marked, (path.error / path.error[0])[marked], mark, color=colour, label=label, markersize=5)
    moves = flow.step_weights(WMA(Beta(0.5)), steps)
    mass, largest = flow.start_mass(moves)[1:], float(moves[1:].max())
    low, high = 1 / (1 + strength), largest / -np.log1p(-largest) / (1 + strength)
    axes.fill_between(
        clock, mass**low, mass**high, color=GREY, alpha=0.25, linewidth=0, label="Beta(½): bounds"
    )
    axes.set(xscale="log", yscale="log", xlabel=f"step t (of T = {steps})", ylim=(3e-3, 1.3))
    axes.set(
        ylabel=r"teacher error  $\|E^t\|\;/\;\|E^0\|$",
        title=f"Marks: simulated. Lines: predicted. λ = {strength:g}",
    )
    axes.legend(loc="lower left")
    return figure


def biases() -> Figure:
    """What is left of the anchor in the task subspace at the end of training, against λ."""
    figure = blank(width=7.2, height=4.8)
    axes = figure.subplots()
    problem = _spread_problem()
    whole = float(np.linalg.norm(problem.start_inside - problem.best))

    def left(solution: Callable[[Problem, float], ndarray]) -> list[float]:
        ends = (problem.task.coordinates(solution(problem, strength)) for strength in STRENGTHS)
        return [float(np.linalg.norm(end - problem.best)) / whole for end in ends]

    axes.plot(STRENGTHS, left(solve.distilled), color=STATIC, label="static distillation")
    axes.plot(STRENGTHS, left(solve.l2), "--", color=RIDGE, label="L2-SP (σ² from 0.1 to 10)")
    runs: list[tuple[str, Teacher, int, str, Any]] = [
        ("WMA Beta(½), T = 100", WMA(Beta(0.5)), 100, SKY, ":"),
        ("WMA Beta(½), T = 10 000", WMA(Beta(0.5)), 10_000, STUDENT, "-"),
        ("WMA Uniform, T = 10 000", WMA(Uniform()), 10_000, PURPLE, "-."),
        ("EMA horizon 0.3 T, T = 10 000", EMA(horizon=0.3), 10_000, RED, (0, (6, 2, 1, 2, 1, 2))),
    ]
    for label, teacher, steps, colour, dash in runs:
        moves = flow.step_weights(teacher, steps)
        # Student tracking: the student carries λ/(1+λ) of what the teacher still had one step before.
        ended = [solve.distilled_keep(x) * flow.contraction(moves, x)[-2] for x in STRENGTHS]
        axes.plot(STRENGTHS, ended, linestyle=dash, color=colour, label=label)
    axes.set(xscale="log", yscale="log", xlabel="distillation strength λ", ylim=(1e-5, 1.5))
    axes.set(
        ylabel=r"bias of the student  $\|(W-W^*)P\|\;/\;\|W^0P-W^*\|$",
        title="Anchor bias after training",
    )
    axes.legend(loc="lower right")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "geometry": geometry,
    "gap": gaps,
    "contraction": contractions,
    "bias": biases,
}

_COLOURS = [BLUE, ORANGE, GREEN, PURPLE]
_DASHES = ["-", "--", "-.", ":"]


def _spread_problem() -> Problem:
    """Eight directions with σ² from 0.1 to 10, each as far from its solution, and two without data."""
    spectrum = np.sqrt(np.logspace(1, -1, 8))
    inputs = np.vstack([np.diag(spectrum), np.zeros((2, 8))])
    return Problem(inputs, spectrum[None], np.zeros((1, 10)))


def _draw_across(axes: Axes) -> None:
    """Two weights, one direction of data: every strategy stays on the line through W⁰ along the data."""
    angle, strength = np.deg2rad(20), 1.0
    along = np.array([np.cos(angle), np.sin(angle)])
    problem = Problem(1.4 * along[:, None], np.array([[-1.8 * 1.4]]), np.array([[1.6, 2.2]]))
    reach = np.linspace(-3, 3.4, 2)[:, None] * along
    above = problem.task.outside(problem.start)
    axes.plot(*reach.T, color=GREY, linewidth=5, alpha=0.35, label="task subspace", solid_capstyle="round")
    axes.plot(*(reach + above).T, color=GREY, linestyle="--", linewidth=1, label="same complement as $W^0$")
    best = solve.task_solution(problem)
    _segment(axes, problem.start, problem.task.inside(problem.start))
    _segment(axes, best, solve.direct(problem))
    path = flow.simulate(problem, WMA(Beta(0.5)), strength=strength, steps=200)
    students = np.concatenate([path.student(t) for t in range(1, 201)])
    axes.plot(*students.T, ".", color=STUDENT, markersize=5, label="WMA students, t = 1 … 200")
    _mark(axes, problem.start, "$W^0$", BLACK, "o", (6, 6))
    _mark(axes, best, r"$W^*$", BLACK, "*", (8, -14))
    _mark(axes, solve.direct(problem), "direct", DIRECT, "s", (-10, 10))
    _mark(axes, solve.l2(problem, strength), "L2", RIDGE, "D", (-4, 10))
    _mark(axes, solve.distilled(problem, strength), "static", STATIC, "^", (-14, 10))
    axes.set(title="(a) Across the task subspace, λ = 1", xlabel="first weight", ylabel="second weight")
    axes.set(aspect="equal", xlim=(-3.4, 3.6), ylim=(-2.8, 4.2))
    axes.legend(loc="lower right", fontsize=8)


def _draw_within(axes: Axes) -> None:
    """Two directions of data, one strong and one weak: L2 bends where distillation goes straight."""
    spectrum = np.array([2.0, 0.5])
    problem = Problem(
        np.diag(spectrum), -1.2 * spectrum[None] * np.array([[1.0, 1.1]]), np.array([[1.8, 2.0]])
    )
    best = solve.task_solution(problem)
    first, second = np.meshgrid(np.linspace(-2.3, 2.7, 101), np.linspace(-2.3, 2.7, 101))
    excess = (spectrum[0] * (first - best[0, 0])) ** 2 + (spectrum[1] * (second - best[0, 1])) ** 2
    axes.contour(
        first, second, excess / 2, levels=2.0 ** np.arange(-3, 6), colors=GREY, linewidths=0.5, alpha=0.6
    )
    strengths = np.concatenate([[0.0], np.logspace(-3, 4, 200)])
    for solution, colour, dash, label, mark in (
        (solve.l2, RIDGE, "--", "L2, λ from ∞ to 0", "D"),
        (solve.distilled, STATIC, "-", "static, λ from ∞ to 0", "^"),
    ):
        curve = np.concatenate([solution(problem, x) for x in strengths])
        axes.plot(*curve.T, dash, color=colour, label=label)
        axes.plot(*solution(problem, 1.0).T, mark, color=colour, markersize=8)
    path = flow.simulate(problem, WMA(Beta(0.5)), strength=1.0, steps=400, pace=flow.Flow(0.05))
    axes.plot(*path.students[:, 0].T, color=STUDENT, linewidth=2, label="WMA student over time, λ = 1")
    axes.plot(*path.students[-1].T, "o", color=STUDENT, markersize=7)
    _mark(axes, problem.start, "$W^0$", BLACK, "o", (6, 6))
    _mark(axes, best, r"$W^*$", BLACK, "*", (8, -14))
    axes.set(title="(b) Inside it (marks: λ = 1; contours: task loss)", aspect="equal")
    axes.set(xlabel="strong direction, σ = 2", ylabel="weak direction, σ = ½")
    axes.legend(loc="lower right", fontsize=8)


def _segment(axes: Axes, start: Float[ndarray, "1 2"], end: Float[ndarray, "1 2"]) -> None:
    axes.plot(*np.concatenate([start, end]).T, color=GREY, linestyle=":", linewidth=1)


def _mark(axes: Axes, at: Float[ndarray, "1 2"], name: str, colour: str, mark: str, aside: Any) -> None:
    axes.plot(*at.T, mark, color=colour, markersize=12 if mark == "*" else 8, zorder=5)
    axes.annotate(name, at[0], xytext=aside, textcoords="offset points", color=colour, fontsize=10)
