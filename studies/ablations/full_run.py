"""The paper's teachers at its own length, 25 030 steps, over the path of a simulated student.

The policies are those that train. The student is linear: a mode w with rate r learns a new value 1 from 0 and is pulled
back to its teacher ψ, w ← w − η_t r [(w − 1) + λ (w − ψ)], with λ = 0.9 and the paper's schedule η_t (500 steps of
warm-up, then cosine). 64 modes have rates of 10⁻⁴ to 10⁻¹ a step, evenly in their logarithm. The mean of (w − ψ)²
stands for the KL between teacher and student, to which it is proportional where both are close.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from studies.ablations.published import RELEASED_KL
from tracer.core.kernels import Beta
from tracer.core.markdown import markdown_table
from tracer.core.teachers import EMA, WMA, Teacher, advance
from tracer.training.optim import Schedule

STEPS, WARMUP, STRENGTH, MODES = 25_030, 500, 0.9, 64
SLOWEST, FASTEST = -4.0, -1.0  # logarithms of the rates
SHARES = (0.1, 0.5, 0.9, 1.0)
HALF_WINDOW = 250  # values are means over 1 % of training on both sides, as those of the released curves
TEACHERS: dict[str, Teacher] = {
    "EMA, every step": EMA(momentum=0.9, ramp=0.2),
    "EMA, every 500": EMA(momentum=0.9, every=500, ramp=0.2),
    "β = 1.5": WMA(Beta(1.5)),
    "β = 1": WMA(Beta(1.0)),
    **{f"every {every}": WMA(Beta(0.5), every, "updates") for every in (5, 50, 500, 1000, 2500)},
    "β = 0.2": WMA(Beta(0.2)),
    "β = 0.5, every step": WMA(Beta(0.5)),
    "every 500, by progress": WMA(Beta(0.5), 500),
    "every 2500, by progress": WMA(Beta(0.5), 2500),
}


class Course(NamedTuple):
    """A teacher's course: what it holds at the end, and its distance from the student along the way."""

    start: float  # mass of θ₀ and θ₁ in the last average
    age: float  # mean age of the last average, as a share of training
    gaps: tuple[float, ...]  # at SHARES
    peak: float  # share of training at which the gap is largest


def courses(slowest: float = SLOWEST, fastest: float = FASTEST) -> dict[str, Course]:
    """The course of every teacher, with rates between 10^slowest and 10^fastest."""
    weights = np.stack([_weights(policy) for policy in TEACHERS.values()], axis=1)
    rate = np.logspace(slowest, fastest, MODES)[:, None]
    schedule = Schedule(1.0, WARMUP, STEPS)
    student, teacher = (np.zeros((MODES, len(TEACHERS))) for _ in range(2))
    gaps = np.zeros((STEPS + 1, len(TEACHERS)))
    for step in range(STEPS):
        student -= schedule(step) * rate * ((student - 1) + STRENGTH * (student - teacher))
        teacher += weights[step + 1] * (student - teacher)
        gaps[step + 1] = np.square(student - teacher).mean(axis=0)
    return {name: _course(weights[:, i], gaps[:, i]) for i, name in enumerate(TEACHERS)}


def table(courses: dict[str, Course]) -> str:
    """The courses beside the released curves, as Markdown."""
    percent = [f"{100 * share:.0f} %" for share in SHARES]
    heads = ("teacher", "θ₀ and θ₁", "mean age", *(f"gap at {at}" for at in percent))
    heads += tuple(f"released KL at {at}" for at in percent)
    rows = []
    for name, course in courses.items():
        released = RELEASED_KL.get(name)
        theirs = [f"{value:.4f}" for value in released] if released else [""] * len(SHARES)
        ours = [f"{gap:.4f}" for gap in course.gaps]
        rows.append((name, f"{100 * course.start:.2f} %", f"{course.age:.4f} T", *ours, *theirs))
    return markdown_table(heads, rows)


def rank_correlations(courses: dict[str, Course]) -> list[float]:
    """Spearman's correlation of our gaps and the released KLs over the ten teachers, at each of SHARES."""
    from scipy.stats import spearmanr

    released = np.array(list(RELEASED_KL.values()))
    gaps = np.array([courses[name].gaps for name in RELEASED_KL])
    return [float(spearmanr(gaps[:, i], released[:, i])[0]) for i in range(len(SHARES))]  # pyright: ignore


def _weights(policy: Teacher) -> np.ndarray:
    """ω after each step; the first entry, of the start, is 1."""
    weights, mass = np.ones(STEPS + 1), policy.start(STEPS)
    for step in range(1, STEPS + 1):
        weights[step], mass = advance(policy, mass, step, STEPS)
    return weights


def _course(weights: np.ndarray, gaps: np.ndarray) -> Course:
    later = np.cumprod(1 - weights[::-1])[::-1]  # what is left of an iterate after all moves from this one on
    masses = weights * np.append(later[1:], 1.0)
    age = float(masses @ np.arange(STEPS, -1, -1)) / STEPS
    at = [round(share * STEPS) for share in SHARES]
    means = [float(gaps[max(1, i - HALF_WINDOW) : i + HALF_WINDOW + 1].mean()) for i in at]
    return Course(float(masses[:2].sum()), age, tuple(means), float(gaps.argmax()) / STEPS)
