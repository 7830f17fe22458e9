"""The theorems: each is a statement with a search for its violation.

`verify` draws random instances (shapes, ranks, spectra, λ, kernels, policies, intervals) and keeps the
largest relative violation of each, in a space of inputs or of features. `origin` says whether a statement is
the paper's, a corrected form, or added here; docs/theory.md lists what was corrected and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from studies.theory.claims import averages, closed, moving, persistence
from studies.theory.spaces import SPACES


@dataclass(frozen=True)
class Theorem:
    """A statement and a function that returns its violation on one random instance."""

    name: str
    statement: str
    violation: Callable[..., float]  # takes a generator and, if it is about inputs, a `Draw`
    origin: Literal["paper", "corrected", "added"] = "paper"
    about_inputs: bool = True

    def search(self, rng: Generator, space: str) -> float:
        """The violation on one random instance."""
        return self.violation(rng, SPACES[space]) if self.about_inputs else self.violation(rng)


class Result(NamedTuple):
    """The largest relative violation of a theorem over its instances."""

    name: str
    statement: str
    worst: float
    instances: int
    origin: str = "paper"
    space: str = "inputs"


THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        "trace and least squares",
        "½‖WX − Y‖² = L_CL + ½‖WX‖² + ½‖Y‖², L_CL = −Tr(YᵀWX) = n(n−1)(L_MMCL − R)",
        closed.trace_and_least_squares,
    ),
    Theorem(
        "descent lemma",
        "gradient descent on ½⟨W,QW⟩ − ⟨B,W⟩ ends at (I − Π)W₀ + Q⁺B",
        closed.descent_lemma,
        about_inputs=False,
    ),
    Theorem("direct finetuning", "ends at W⁰(I − P) + W*, W* = YXᵀ(XXᵀ)⁺", closed.direct_finetuning),
    Theorem("L2 regularisation", "ends at (YXᵀ + λW⁰)(XXᵀ + λI)⁻¹", closed.l2_regularisation),
    Theorem("self-distillation", "ends at W⁰(I − P/(1+λ)) + W*/(1+λ)", closed.self_distillation),
    Theorem("L2 limits", "λ→0: direct finetuning, λ→∞: W⁰; both with their rates", closed.l2_limits),
    Theorem(
        "geometric decomposition",
        "W(I − P) = W⁰(I − P) for all three, L2 too; inside, W⁰ and W* mix per direction",
        closed.geometric_decomposition,
        "corrected",
    ),
    Theorem(
        "unrolled average",
        "ψᵗ = Σ α_k Wᵏ / Σ α_k, θ₀ included",
        averages.unrolled_average,
        about_inputs=False,
    ),
    Theorem(
        "mass of θ₀",
        "ω_{0|t} = α₀ / Σ_{j≤t} α_j = Π(1 − ω_k) > 0",
        averages.start_mass,
        about_inputs=False,
    ),
    Theorem(
        "EMA as a kernel",
        "α₀ = 1, α_k = (1−ρ)ρ⁻ᵏ gives ω_t = 1 − ρ; α_k = ρ⁻ᵏ gives (1−ρ)/(1−ρᵗ⁺¹)",
        averages.ema_is_a_kernel,
        "corrected",
        about_inputs=False,
    ),
    Theorem("single step", "Wᵗ = Wᵗ⁻¹(I − P) + (λ ψᵗ⁻¹P + W*)/(1+λ)", moving.single_step),
    Theorem("teacher contraction", "Eᵗ = (1 − ω_t/(1+λ)) Eᵗ⁻¹, E = (ψ − W*)P", moving.teacher_contraction),
    Theorem("student tracking", "(Wᵗ − W*)P = λ/(1+λ) Eᵗ⁻¹", moving.student_tracking),
    Theorem(
        "bias-free convergence",
        "‖Eᵗ‖ ≤ exp(−Σω_k/(1+λ))‖E⁰‖ under any policy, EMA included",
        moving.bias_free_convergence,
    ),
    Theorem(
        "linear rate",
        "‖Eᵗ‖ ≤ (1 − ω_min/(1+λ))ᵐ‖E⁰‖ after m moves, the excess loss with its square",
        moving.linear_rate,
    ),
    Theorem(
        "dominance over static",
        "error a‖ψᵗ⁻¹ − W*‖ ≤ a‖W⁰ − W*‖ inside, a = λ/(1+λ); at every t ≥ 1",
        moving.dominance,
        "corrected",
    ),
    Theorem(
        "finite-horizon persistence",
        "one-way path: ‖Wᵀ − ψᵀ‖ ≥ ω_{0|T}‖Wᵀ − W⁰‖; pull ≥ μ times that, less ‖r‖",
        persistence.finite_horizon,
        about_inputs=False,
    ),
    Theorem(
        "EMA collapse",
        "Wᵗ − ψᵗ = Σ ρᵗ⁻ᵏ⁺¹(Wᵏ − Wᵏ⁻¹) → 0 as the student's steps vanish",
        averages.ema_collapse,
        about_inputs=False,
    ),
    Theorem(
        "gap of SD-WMA",
        "‖Wᵗ − ψᵗ‖ = (1−ω_t)/(1+λ) Π_{k<t}(1 − ω_k/(1+λ))‖E⁰‖; the path is one-way",
        moving.gap_formula,
        "added",
    ),
    Theorem(
        "bias is persistence",
        "ω_{0|t}ᶜ ≤ ‖Eᵗ‖/‖E⁰‖ ≤ ω_{0|t}ᶜˢ, c = 1/(1+λ), s = ω̂/−log(1−ω̂)",
        moving.bias_is_persistence,
        "added",
    ),
    Theorem(
        "direction by direction",
        "under gradient steps or flow, each direction follows its own two-number recursion",
        moving.direction_by_direction,
        "added",
    ),
)


def verify(
    instances: int = 100, seed: int = 0, theorems: Iterable[Theorem] = THEOREMS, space: str = "inputs"
) -> list[Result]:
    """The largest violation of each theorem. Its instances do not depend on the other theorems."""
    if instances < 1:
        raise ValueError(f"verification needs 1 or more instances, not {instances}")
    return [_result(theorem, instances, seed, space) for theorem in theorems]


def _result(theorem: Theorem, instances: int, seed: int, space: str) -> Result:
    rng = np.random.default_rng([seed, *theorem.name.encode(), *space.encode()])
    violations = [theorem.search(rng, space) for _ in range(instances)]
    worst = float(np.max(violations))  # np.max, unlike max, lets a NaN through
    return Result(theorem.name, theorem.statement, worst, instances, theorem.origin, space)
