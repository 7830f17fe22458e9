"""The claim that distillation still pulls at the end of a monotone path (appendix "The Persistent Regularizer").

The loss is a KL divergence, which is not quadratic: its pull is F(W − ψ) plus a residual r, and the bound
μ ω_{0|T} ‖W − W⁰‖ − ‖r‖ says something only where it is positive. r is of second order in the distance, and
ω_{0|T} can be 1e-5, so the distance is drawn in units of ω_{0|T}.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from studies.theory import flow
from studies.theory.definitions import defined_moves
from studies.theory.distance import excess, worst
from studies.theory.instances import average, duration


class Ending(NamedTuple):
    """The last step of a run along one direction."""

    held: float  # ω_{0|T}
    moved: float  # ‖Wᵀ − W⁰‖
    gap: float  # ‖Wᵀ − ψᵀ‖
    stiffness: float  # μ, the curvature of the loss along the path
    residual: float  # ‖r‖
    pull: float  # ‖g‖

    @property
    def bound(self) -> float:
        """The lower bound of the pull."""
        return self.stiffness * self.held * self.moved - self.residual


def finite_horizon(rng: Generator) -> float:
    """The gap bound, and the bound on the pull of a loss that is not quadratic."""
    end = ending(rng)
    return worst(
        excess(end.held * end.moved, end.gap, scale=end.moved),
        excess(end.bound, end.pull, scale=end.stiffness * end.moved),
    )


def ending(rng: Generator) -> Ending:
    """A run along one direction with a teacher of any kernel."""
    steps, p, d, n = duration(rng), int(rng.integers(2, 6)), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    teacher = average(rng, steps)
    held = float(np.prod(1 - defined_moves(teacher, steps)[1:]))
    start, along = rng.normal(size=(p, d)), rng.normal(size=(p, d))
    along /= np.linalg.norm(along)
    travelled = np.concatenate([[0.0], np.cumsum(rng.exponential(size=steps))])
    travelled *= held * 10 ** rng.uniform(-3, -1) / travelled[-1]
    path = start + travelled[:, None, None] * along
    student, anchor = path[-1], flow.averaged(path, flow.step_weights(teacher, steps))[-1]
    inputs = rng.normal(size=(d, n))
    pull = _distillation_gradient(student, anchor, inputs)
    return Ending(
        held=held,
        moved=float(np.linalg.norm(student - start)),
        gap=float(np.linalg.norm(student - anchor)),
        stiffness=float((along * _curvature(anchor, along, inputs)).sum()),
        residual=float(np.linalg.norm(pull - _curvature(anchor, student - anchor, inputs))),
        pull=float(np.linalg.norm(pull)),
    )


def _distillation_gradient(
    student: Float[ndarray, "p d"], anchor: Float[ndarray, "p d"], inputs: Float[ndarray, "d n"]
) -> Float[ndarray, "p d"]:
    """∇_W Σ_i KL(softmax(ψ x_i) ‖ softmax(W x_i)): a self-distillation loss that is not quadratic."""
    return (_softmax(student @ inputs) - _softmax(anchor @ inputs)) @ inputs.T


def _curvature(
    anchor: Float[ndarray, "p d"], along: Float[ndarray, "p d"], inputs: Float[ndarray, "d n"]
) -> Float[ndarray, "p d"]:
    """F(D): the Hessian of that loss at the teacher, applied to D."""
    share, change = _softmax(anchor @ inputs), along @ inputs
    return (share * (change - (share * change).sum(axis=0))) @ inputs.T


def _softmax(scores: Float[ndarray, "p n"]) -> Float[ndarray, "p n"]:
    grown = np.exp(scores - scores.max(axis=0))
    return grown / grown.sum(axis=0)
