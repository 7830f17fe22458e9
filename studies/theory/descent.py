"""Gradient descent on matrix quadratics, and the objectives it is run on.

    f(W) = ½⟨W, Q(W)⟩ − ⟨B, W⟩ + const,   Q linear, self-adjoint and positive semi-definite.

From W₀ with a step in (0, 2/‖Q‖) and B in range(Q) it ends at (I − Π)W₀ + Q⁺B, Π the projector onto
range(Q). Reference: TRACER, appendix lemma "Gradient Descent for Matrix Quadratic Programs".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from studies.theory.problem import Problem


@dataclass(frozen=True)
class Quadratic:
    """f, defined by the action of Q, by B, and by the smallest and largest positive eigenvalue of Q."""

    act: Callable[[ndarray], ndarray]
    linear: Float[ndarray, "p d"]
    least: float
    largest: float

    def gradient(self, weights: Float[ndarray, "p d"]) -> Float[ndarray, "p d"]:
        return self.act(weights) - self.linear

    @property
    def best_rate(self) -> float:
        """The rate with the fastest worst-case convergence, 2 / (least + largest)."""
        return 2 / (self.least + self.largest)

    def descend(
        self, start: Float[ndarray, "p d"], *, rate: float | None = None, steps: int = 1000
    ) -> Float[ndarray, "p d"]:
        """The weights after `steps` gradient steps, or fewer if they no longer change."""
        rate = self.best_rate if rate is None else rate
        if not 0 < rate * self.largest < 2:
            raise ValueError(f"descent needs a rate inside (0, {2 / self.largest:g}), not {rate:g}")
        weights = start
        for _ in range(steps):
            moved = weights - rate * self.gradient(weights)
            if np.array_equal(moved, weights):
                break
            weights = moved
        return weights


def direct_objective(problem: Problem) -> Quadratic:
    """½‖W X − Y‖²: Q(W) = W X Xᵀ, B = Y Xᵀ."""
    return distilled_objective(problem, 0.0, problem.start)


def l2_objective(problem: Problem, strength: float) -> Quadratic:
    """½‖W X − Y‖² + (λ/2)‖W − W⁰‖²: Q(W) = W X Xᵀ + λ W, B = Y Xᵀ + λ W⁰."""
    inputs, spectrum = problem.inputs, problem.task.spectrum
    everywhere = problem.task.rank == inputs.shape[0]
    return Quadratic(
        act=lambda weights: (weights @ inputs) @ inputs.T + strength * weights,
        linear=problem.target @ inputs.T + strength * problem.start,
        least=(float(spectrum[-1]) ** 2 if everywhere else 0.0) + strength,
        largest=float(spectrum[0]) ** 2 + strength,
    )


def distilled_objective(problem: Problem, strength: float, anchor: Float[ndarray, "p d"]) -> Quadratic:
    """½‖W X − Y‖² + (λ/2)‖W X − A X‖²: Q(W) = (1+λ) W X Xᵀ, B = (Y + λ A X) Xᵀ; A may be any teacher."""
    inputs, spectrum = problem.inputs, problem.task.spectrum
    return Quadratic(
        act=lambda weights: (1 + strength) * (weights @ inputs) @ inputs.T,
        linear=(problem.target + strength * (anchor @ inputs)) @ inputs.T,
        least=(1 + strength) * float(spectrum[-1]) ** 2,
        largest=(1 + strength) * float(spectrum[0]) ** 2,
    )
