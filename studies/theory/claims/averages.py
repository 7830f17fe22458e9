"""Claims about teachers as averages of any path (appendix "WMA vs. EMA Teachers" and the sections after it)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from studies.theory import flow
from studies.theory.definitions import interval_masses
from studies.theory.distance import excess, relative_distance, worst
from studies.theory.instances import average, duration
from tracer.core.kernels import Exponential
from tracer.core.teachers import EMA, WMA


def unrolled_average(rng: Generator) -> float:
    steps = duration(rng)
    teacher = average(rng, steps)
    path = _walk(rng, steps)
    masses = interval_masses(teacher, steps)
    expected = np.cumsum(masses[:, None] * path, axis=0) / np.cumsum(masses)[:, None]
    return relative_distance(flow.averaged(path, flow.step_weights(teacher, steps)), expected)


def start_mass(rng: Generator) -> float:
    steps = duration(rng)
    teacher = average(rng, steps)
    moves, masses = flow.step_weights(teacher, steps), interval_masses(teacher, steps)
    weights = flow.averaged(np.eye(steps + 1), moves)  # row t holds ω_{0|t} … ω_{t|t}
    expected = masses[0] / np.cumsum(masses)
    return worst(
        float(np.abs(weights[:, 0] / expected - 1).max()),
        float(np.abs(flow.start_mass(moves) / expected - 1).max()),
        float(np.abs(weights.sum(axis=1) - 1).max()),
        excess(-weights.min(), 0.0, scale=1.0),
    )


def ema_is_a_kernel(rng: Generator) -> float:
    """The exponential kernel with α₀ = 1 is the EMA; with α_k = ρ⁻ᵏ for all k it is the bias-corrected EMA."""
    steps, momentum = duration(rng), float(rng.uniform(0.5, 0.99))
    path = _walk(rng, steps)
    by_kernel = flow.step_weights(WMA(Exponential(momentum, steps)), steps)
    by_recursion = flow.step_weights(EMA(momentum=momentum), steps)
    smooth = flow.step_weights(WMA(lambda t: momentum ** -(t * (steps + 1))), steps)
    corrected = (1 - momentum) / (1 - momentum ** np.arange(1, steps + 2))
    return worst(
        relative_distance(by_kernel[1:], np.full(steps, 1 - momentum)),
        relative_distance(flow.averaged(path, by_kernel), flow.averaged(path, by_recursion)),
        relative_distance(smooth, corrected),
    )


def ema_collapse(rng: Generator) -> float:
    """The gap vanishes as the student's steps do, whether or not the student converges."""
    steps, momentum, slow = 400, float(rng.uniform(0.1, 0.9)), float(rng.uniform(0.1, 0.9))
    moves = flow.step_weights(EMA(momentum=momentum), steps)
    deltas = rng.normal(size=(steps + 1, 4))
    deltas[1:] *= slow ** np.arange(steps)[:, None]
    path = np.cumsum(deltas, axis=0)
    gaps = path - flow.averaged(path, moves)
    lags = np.subtract.outer(np.arange(steps + 1), np.arange(steps + 1)) + 1.0
    kernel = np.where(lags >= 1, momentum ** np.maximum(lags, 1), 0.0)
    kernel[:, 0] = 0.0
    lengths = np.linalg.norm(deltas, axis=1)
    later = np.maximum.accumulate(lengths[::-1])[::-1]
    split = steps // 2
    bound = momentum**split * np.linalg.norm(gaps[split]) + momentum / (1 - momentum) * later[split + 1]
    scale = float(lengths[1:].max())
    return worst(
        relative_distance(gaps, kernel @ deltas, scale=scale),
        excess(float(np.linalg.norm(gaps[2 * split])), bound, scale=scale),
        float(np.linalg.norm(gaps[-1])) / scale,
    )


def _walk(rng: Generator, steps: int) -> Float[ndarray, "times k"]:
    return np.cumsum(rng.normal(size=(steps + 1, int(rng.integers(1, 9)))), axis=0)
