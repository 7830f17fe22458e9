"""The solution of each finetuning strategy in closed form.

All of them leave W⁰(I − P) unchanged, and inside the task subspace interpolate between W⁰ and the task solution
W* = Y X⁺, direction by direction. `keep` is the share of W⁰ that stays in each direction.

    direct   0          L2-SP   λ / (σ² + λ)          static self-distillation   λ / (1 + λ)

Reference: TRACER, Theorem "Unified Framework for Contrastive Finetuning Solutions".
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from studies.theory.problem import Problem


def mixed(problem: Problem, keep: Float[ndarray, " r"] | float) -> Float[ndarray, "p d"]:
    """W⁰(I − P) + [W⁰U · keep + W*U · (1 − keep)] Uᵀ, as an update of W⁰, so that keep = 1 returns W⁰."""
    return problem.start + problem.task.lift((problem.best - problem.start_inside) * (1 - keep))


def task_solution(problem: Problem) -> Float[ndarray, "p d"]:
    """W* = Y Xᵀ (X Xᵀ)⁺ = Y X⁺: the map of minimum norm that solves the task."""
    return problem.task.lift(problem.best)


def direct(problem: Problem) -> Float[ndarray, "p d"]:
    """Direct finetuning: W⁰(I − P) + W*."""
    return mixed(problem, 0.0)


def l2(problem: Problem, strength: float) -> Float[ndarray, "p d"]:
    """L2-SP, (λ/2)‖W − W⁰‖²: (Y Xᵀ + λ W⁰)(X Xᵀ + λ I)⁻¹; λ = 0 is direct finetuning, λ = ∞ is W⁰."""
    return mixed(problem, l2_keep(problem.task.spectrum, strength))


def distilled(problem: Problem, strength: float) -> Float[ndarray, "p d"]:
    """Static self-distillation, (λ/2)‖W X − W⁰ X‖²: W⁰(I − P/(1+λ)) + W*/(1+λ)."""
    return mixed(problem, distilled_keep(strength))


def l2_keep(spectrum: Float[ndarray, " r"], strength: float) -> Float[ndarray, " r"]:
    """λ / (σ² + λ): strong directions keep least."""
    _check(strength)
    if strength == 0:
        return np.zeros_like(spectrum)
    return 1 / (1 + np.square(spectrum) / strength)


def distilled_keep(strength: float) -> float:
    """a = λ / (1 + λ), the same in every direction."""
    _check(strength)
    return 1.0 if math.isinf(strength) else strength / (1 + strength)


def _check(strength: float) -> None:
    if not strength >= 0:
        raise ValueError(f"a penalty needs a strength of 0 or more, not {strength}")
