"""Wrong variants of the theory are caught: each makes at least one theorem fail by more than a thousandth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from studies.theory import descent, distance, flow, instances, problem, solve, subspace
from studies.theory.claims import averages, closed
from studies.theory.theorems import THEOREMS, verify
from tracer.core.kernels import Exponential, Uniform
from tracer.core.teachers import EMA, WMA, Mass

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

    def log_density(self, tick: int, steps: int) -> float:
        return super().log_density(min(tick + 1, steps) if tick else 0, steps)


@dataclass(frozen=True)
class Short(WMA):
    """ω_t = α_t / Σ_{j<t} α_j: the newest mass is missing from the sum."""

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        _, after = super().move(mass, step, steps)
        return math.exp(min(0.0, mass.pending - mass.held)), after


@dataclass(frozen=True)
class Sparse(WMA):
    """A sparse move carries its own step's mass and drops that of the steps between."""

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        return super().move(Mass(mass.held, self.log_density(step, steps)), step, steps)


@dataclass(frozen=True)
class Rescaled(WMA):
    """The clock of updates is divided by the number of updates, not of steps, and so reads the whole kernel."""

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        if self.clock == "progress":
            return super().move(mass, step, steps)
        moves = 1 + math.ceil((step - 1) / self.every)
        pending = self.log_density(moves, 1 + math.ceil((steps - 1) / self.every))
        held = float(np.logaddexp(mass.held, pending))
        return math.exp(pending - held), Mass(held)


@dataclass(frozen=True)
class Endless(WMA):
    """The last step is not an end: a last interval shorter than the others never reaches the average."""

    def due(self, step: int, steps: int) -> bool:
        return super().due(step, steps + 1)


@dataclass(frozen=True)
class Aligned(WMA):
    """The released clock moves after steps N, 2N, … instead of 1, N + 1, …"""

    def due(self, step: int, steps: int) -> bool:
        return step % self.every == 0 or step == steps


@pytest.mark.parametrize("mutant", [Forgetful, Late, Short, Sparse, Rescaled, Endless, Aligned])
def test_wrong_averages_are_caught(mutant: type[WMA], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "WMA", mutant)
    largest = violations("unrolled average", "mass of θ₀", "teacher contraction")
    assert min(largest.values()) > CAUGHT, largest


def test_forgotten_start_breaks_persistence(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step of one iterate: the teacher is the student and pulls no more."""
    monkeypatch.setattr(instances, "WMA", Forgetful)
    monkeypatch.setattr("studies.theory.claims.persistence.duration", lambda rng: 1)
    assert violations("finite-horizon persistence")["finite-horizon persistence"] > CAUGHT


def test_truncated_rank_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spanned = subspace.spanned

    def truncated(inputs: np.ndarray) -> subspace.Subspace:
        whole = spanned(inputs)
        rank = max(1, whole.rank - 1)
        return replace(
            whole,
            basis=whole.basis[:, :rank],
            spectrum=whole.spectrum[:rank],
            loadings=whole.loadings[:, :rank],
        )

    monkeypatch.setattr(subspace, "spanned", truncated)
    largest = violations(
        "direct finetuning",
        "L2 regularisation",
        "self-distillation",
        "geometric decomposition",
        "single step",
        "direction by direction",
    )
    assert min(largest.values()) > CAUGHT, largest


def test_rounding_taken_for_rank_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spanned = subspace.spanned
    monkeypatch.setattr(subspace, "spanned", lambda inputs: spanned(inputs, tolerance=0.0))
    assert violations("geometric decomposition")["geometric decomposition"] > CAUGHT
    # Not only is the number wrong: the solution is, by the reciprocals of what is only rounding.
    case = next(c for c in drawn(20) if c.rank < min(c.images.shape))
    exact = case.problem.target @ np.linalg.pinv(case.images, rtol=1e-8)
    assert distance.relative_distance(solve.task_solution(case.problem), exact) > CAUGHT


def drawn(count: int) -> list[instances.Instance]:
    rng = np.random.default_rng(0)
    return [instances.instance(rng) for _ in range(count)]


def anchored_at_the_start() -> Callable[..., Any]:
    original, first = flow.student_step, {}

    def static(student: Any, anchor: Any, best: Any, strength: float, share: Any) -> Any:
        # The arrays are kept, lest another path's arrays be given the same identity.
        anchor = first.setdefault(id(best), (best, anchor.copy()))[1]
        return original(student, anchor, best, strength, share)

    return static


def test_static_anchor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "student_step", anchored_at_the_start())
    largest = violations(
        "single step", "teacher contraction", "student tracking", "bias-free convergence", "gap of SD-WMA"
    )
    assert min(largest.values()) > CAUGHT, largest


def test_anchoring_at_the_student_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = flow.student_step
    monkeypatch.setattr(
        flow, "student_step", lambda student, anchor, *rest: original(student, student, *rest)
    )
    largest = violations("single step", "teacher contraction", "student tracking")
    assert min(largest.values()) > CAUGHT, largest


@pytest.mark.parametrize("wrong", [lambda x: 1 / (1 + x), lambda x: min(1.0, x)])
def test_wrong_mixing_share_is_caught(
    wrong: Callable[[float], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve, "distilled_keep", wrong)
    monkeypatch.setattr(flow, "distilled_keep", wrong)
    largest = violations("self-distillation", "geometric decomposition", "single step", "student tracking")
    assert min(largest.values()) > CAUGHT, largest


def test_l2_without_its_spectrum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "l2_keep", lambda spectrum, x: np.full_like(spectrum, x / (1 + x)))
    largest = violations("L2 regularisation", "L2 limits", "geometric decomposition")
    assert min(largest.values()) > CAUGHT, largest


def test_wrong_loss_forms_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quadratic without its half, a trace of the wrong sign, a target that repels no other text."""
    quadratic, trace = problem.separating_quadratic, problem.trace_form
    wrong: list[tuple[object, str, Callable[..., Any]]] = [
        (closed, "separating_quadratic", lambda *args: 2 * quadratic(*args)),
        (closed, "trace_form", lambda *args: -trace(*args)),
        (problem, "contrastive_target", lambda texts, text_map: texts.shape[1] * text_map @ texts),
    ]
    for module, name, variant in wrong:
        with monkeypatch.context() as patched:
            patched.setattr(module, name, variant)
            largest = violations("trace and least squares")
        assert min(largest.values()) > CAUGHT, (name, largest)


def test_wrong_descents_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """From zero, W₀ outside range(Q) is lost; with B's sign turned it runs to −Q⁺B."""
    descend, gradient = descent.Quadratic.descend, descent.Quadratic.gradient
    wrong: dict[str, Callable[..., Any]] = {
        "descend": lambda self, start, **options: descend(self, np.zeros_like(start), **options),
        "gradient": lambda self, weights: gradient(self, weights) + 2 * self.linear,
    }
    for name, variant in wrong.items():
        with monkeypatch.context() as patched:
            patched.setattr(descent.Quadratic, name, variant)
            largest = violations("descent lemma")
        assert min(largest.values()) > CAUGHT, (name, largest)


@dataclass(frozen=True)
class Smooth(Exponential):
    """The printed kernel over normalised time, ρ^(−k) at k = 0 too: a bias-corrected EMA, not an EMA."""

    def __call__(self, t: float) -> float:
        return self.momentum ** -(t * (self.steps + 1))


@dataclass(frozen=True)
class Swapped(EMA):
    """The student's share and the teacher's are exchanged."""

    def move(self, mass: Mass, step: int, steps: int) -> tuple[float, Mass]:
        far, after = super().move(mass, step, steps)
        return 1 - far, after


def test_smooth_exponential_kernel_is_no_ema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(averages, "Exponential", Smooth)
    assert violations("EMA as a kernel")["EMA as a kernel"] > CAUGHT


@pytest.mark.parametrize(
    "mutant", [Swapped, lambda momentum: WMA(Uniform())], ids=["swapped", "running mean"]
)
def test_other_recursions_are_no_ema(mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The running mean is never caught up with: its gap stays as the student's steps vanish."""
    monkeypatch.setattr(averages, "EMA", mutant)
    largest = violations("EMA as a kernel", "EMA collapse")
    assert min(largest.values()) > CAUGHT, largest


def test_teacher_slower_than_its_moves_say_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes half as far as ω_t at every step, and so stays above the rate that the ω promise."""
    original = flow.simulate

    def slow(*args: Any, **named: Any) -> flow.Path:
        weights = flow.step_weights
        with monkeypatch.context() as patched:
            patched.setattr(flow, "step_weights", lambda *args: weights(*args) / 2)
            path = original(*args, **named)
        return replace(path, moves=weights(args[1], named["steps"]))

    monkeypatch.setattr(flow, "simulate", slow)
    largest = violations("linear rate", "bias is persistence", "bias-free convergence", "teacher contraction")
    assert min(largest.values()) > CAUGHT, largest


def test_teacher_that_runs_away_does_not_dominate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign turned: the teacher goes from the student instead of toward it, and ends behind the static one."""
    weights = flow.step_weights
    monkeypatch.setattr(flow, "step_weights", lambda *args: np.append(1.0, -weights(*args)[1:]))
    largest = violations("dominance over static", "linear rate")
    assert min(largest.values()) > CAUGHT, largest


def test_student_that_ignores_the_pull_of_the_task_does_not_dominate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "student_step", lambda student, anchor, *rest: anchor)
    assert violations("dominance over static")["dominance over static"] > CAUGHT


def test_start_mass_one_step_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Π_{k<t} (1 − ω_k) where Π_{k≤t} belongs."""
    mass = flow.start_mass
    monkeypatch.setattr(flow, "start_mass", lambda moves: np.append(1.0, mass(moves)[:-1]))
    largest = violations("bias is persistence", "mass of θ₀")
    assert min(largest.values()) > CAUGHT, largest
