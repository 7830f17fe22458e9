"""Wrong variants of the theory are caught: each makes at least one theorem fail by more than a thousandth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tracer.teachers import WMA, Mass
from tracer.theory import flow, instances, solve, subspace
from tracer.theory.theorems import THEOREMS, verify

CAUGHT = 1e-3


def violations(*names: str) -> dict[str, float]:
    chosen = [theorem for theorem in THEOREMS if theorem.name in names]
    assert len(chosen) == len(names)
    return {result.name: result.worst for result in verify(20, seed=3, theorems=chosen)}


@dataclass(frozen=True)
class Forgetful(WMA):
    """θ₀ has no mass, so that the first update erases it (the accumulator starts at 0)."""

    def start(self, steps: int) -> Mass:
        return Mass()


@dataclass(frozen=True)
class Late(WMA):
    """The kernel is read one step too late: α_{t+1} where α_t belongs (and α_T twice)."""

    def density(self, tick: int, steps: int) -> float:
        return super().density(min(tick + 1, steps) if tick else 0, steps)


@dataclass(frozen=True)
class Short(WMA):
    """ω_t = α_t / Σ_{j<t} α_j: the newest mass is missing from the sum."""

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        _, after = super().move(mass, step, steps)
        return min(1.0, mass.pending / mass.held), after


@dataclass(frozen=True)
class Sparse(WMA):
    """A sparse move carries its own step's mass and drops that of the steps between."""

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        return super().move(Mass(mass.held, self.density(step, steps)), step, steps)


@pytest.mark.parametrize("mutant", [Forgetful, Late, Short, Sparse])
def test_wrong_averages_are_caught(mutant: type[WMA], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "WMA", mutant)
    found = violations("unrolled average", "mass of θ₀", "teacher contraction")
    assert min(found.values()) > CAUGHT, found


def test_forgotten_start_breaks_persistence(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step of one iterate: the teacher is the student and pulls no more."""
    monkeypatch.setattr(instances, "WMA", Forgetful)
    monkeypatch.setattr("tracer.theory.claims.averages.duration", lambda rng: 1)
    assert violations("finite-horizon persistence")["finite-horizon persistence"] > CAUGHT


def test_truncated_rank_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spanned = subspace.spanned

    def truncated(inputs: np.ndarray) -> subspace.Subspace:
        whole = spanned(inputs)
        kept = max(1, whole.rank - 1)
        return replace(
            whole,
            basis=whole.basis[:, :kept],
            spectrum=whole.spectrum[:kept],
            loadings=whole.loadings[:, :kept],
        )

    monkeypatch.setattr(subspace, "spanned", truncated)
    found = violations(
        "direct finetuning",
        "L2 regularisation",
        "self-distillation",
        "geometric decomposition",
        "single step",
        "direction by direction",
    )
    assert min(found.values()) > CAUGHT, found


def test_rounding_taken_for_rank_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spanned = subspace.spanned
    monkeypatch.setattr(subspace, "spanned", lambda inputs: spanned(inputs, tolerance=0.0))
    assert violations("geometric decomposition")["geometric decomposition"] > CAUGHT
    # Not only is the number wrong: the solution is, by the reciprocals of what is only rounding.
    case = next(c for c in drawn(20) if c.rank < min(c.images.shape))
    exact = case.problem.target @ np.linalg.pinv(case.images, rtol=1e-8)
    assert instances.apart(solve.task_solution(case.problem), exact) > CAUGHT


def drawn(count: int) -> list[instances.Instance]:
    rng = np.random.default_rng(0)
    return [instances.instance(rng) for _ in range(count)]


def anchored_at_the_start() -> Callable[..., Any]:
    pulled, first = flow.pulled, {}

    def static(student: Any, anchor: Any, best: Any, strength: float, share: Any) -> Any:
        # The arrays are kept, lest another path's arrays be given the same identity.
        anchor = first.setdefault(id(best), (best, anchor.copy()))[1]
        return pulled(student, anchor, best, strength, share)

    return static


def test_static_anchor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "pulled", anchored_at_the_start())
    found = violations(
        "single step", "teacher contraction", "student tracking", "bias-free convergence", "gap of SD-WMA"
    )
    assert min(found.values()) > CAUGHT, found


def test_anchoring_at_the_student_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    pulled = flow.pulled
    monkeypatch.setattr(flow, "pulled", lambda student, anchor, *rest: pulled(student, student, *rest))
    found = violations("single step", "teacher contraction", "student tracking")
    assert min(found.values()) > CAUGHT, found


@pytest.mark.parametrize("wrong", [lambda x: 1 / (1 + x), lambda x: min(1.0, x)])
def test_wrong_mixing_share_is_caught(
    wrong: Callable[[float], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve, "distilled_keep", wrong)
    monkeypatch.setattr(flow, "distilled_keep", wrong)
    found = violations("self-distillation", "geometric decomposition", "single step", "student tracking")
    assert min(found.values()) > CAUGHT, found


def test_l2_without_its_spectrum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "l2_keep", lambda spectrum, x: np.full_like(spectrum, x / (1 + x)))
    found = violations("L2 regularisation", "L2 limits", "geometric decomposition")
    assert min(found.values()) > CAUGHT, found
