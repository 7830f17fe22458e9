"""Paths of student and teacher: the same as in training, and what follows from the closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import gammaln
from torch import nn

from studies.theory import flow, solve
from studies.theory.distance import relative_distance
from studies.theory.instances import instance
from studies.theory.problem import Problem
from tracer.core.kernels import Beta, Early, Kernel, Late, Uniform
from tracer.core.shadow import Shadow
from tracer.core.teachers import EMA, WMA, Frozen, Teacher

POLICIES = [
    WMA(Beta(0.5)),
    WMA(Beta(0.5), every=4),
    WMA(Late(2), every=3, clock="updates"),
    EMA(horizon=0.2, every=2),
    EMA(momentum=0.9, ramp=0.5),
    Frozen(),
]


@pytest.mark.parametrize("teacher", POLICIES, ids=repr)
def test_theory_averages_as_training_does(teacher: Teacher) -> None:
    """The path of weights through `teachers.Shadow`, which training uses, in float64."""
    case = instance(np.random.default_rng(5))
    steps = 17
    path = flow.simulate(
        case.problem,
        teacher,
        strength=1.0,
        steps=steps,
        pace=flow.Flow(0.3 / case.problem.task.spectrum[0] ** 2),
    )
    p, d = case.image_map.shape
    model = nn.Linear(d, p, bias=False, dtype=torch.float64)
    model.weight.data = torch.from_numpy(path.student(0))
    shadow = Shadow(model, teacher, steps=steps)
    for t in range(1, steps + 1):
        model.weight.data = torch.from_numpy(path.student(t))
        moved = shadow.follow(model)
        assert moved == path.moves[t]
        weight = dict(shadow.model.named_parameters())["weight"].numpy()
        np.testing.assert_allclose(
            weight, path.teacher(t), rtol=0, atol=1e-12 * np.abs(path.teacher(t)).max()
        )


def test_frozen_teacher_is_static_distillation() -> None:
    case = instance(np.random.default_rng(6))
    path = flow.simulate(case.problem, Frozen(), strength=case.strength, steps=5)
    assert relative_distance(path.student(5), solve.distilled(case.problem, case.strength)) < 1e-13
    np.testing.assert_array_equal(
        path.teachers, np.broadcast_to(case.problem.start_inside, path.teachers.shape)
    )


def test_long_flow_is_the_exact_step_and_short_flow_is_descent() -> None:
    case = instance(np.random.default_rng(7), well_conditioned=True)
    settings = {"strength": case.strength, "steps": 12}
    teacher = WMA(Beta(0.5))
    exact = flow.simulate(case.problem, teacher, **settings)
    long = flow.simulate(case.problem, teacher, **settings, pace=flow.Flow(1e3))
    assert relative_distance(long.students, exact.students) < 1e-12
    near = [
        relative_distance(
            flow.simulate(case.problem, teacher, **settings, pace=flow.Flow(time)).students,
            flow.simulate(case.problem, teacher, **settings, pace=flow.Descent(time)).students,
        )
        for time in (1e-3, 5e-4)
    ]
    assert near[0] < 1e-3
    assert near[1] / near[0] == pytest.approx(0.25, rel=0.05)  # two orders better than the step is short


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_uniform_kernel_converges_as_a_power_not_geometrically(strength: float) -> None:
    """Π_{k≤t} (1 − c/(k+1)) = Γ(t+2−c) / (Γ(2−c) Γ(t+2)) ~ t^(−c), c = 1/(1+λ)."""
    power, steps = 1 / (1 + strength), 2000
    error = flow.contraction(flow.step_weights(WMA(Uniform()), steps), strength)
    t = np.arange(steps + 1)
    expected = np.exp(gammaln(t + 2 - power) - gammaln(2 - power) - gammaln(t + 2))
    np.testing.assert_allclose(error, expected, rtol=1e-11)
    slope = np.log(error[2000] / error[1000]) / np.log(2)
    assert slope == pytest.approx(-power, rel=1e-2)


def test_beta_kernel_keeps_the_start_as_the_root_of_the_horizon() -> None:
    """α₀ ≈ √(2T)/π of a total near T, so that ω_{0|T} ≈ √2/(π√T): four times the steps, half the mass."""
    masses = [flow.start_mass(flow.step_weights(WMA(Beta(0.5)), steps))[-1] for steps in (1000, 4000)]
    assert masses[0] == pytest.approx(np.sqrt(2) / (np.pi * np.sqrt(1000)), rel=0.05)
    assert masses[0] / masses[1] == pytest.approx(2, rel=0.02)


def test_strong_penalty_leaves_a_finite_run_as_biased_as_static() -> None:
    """Bias-free is a statement about T → ∞: at λ = 1000, ten thousand steps remove less than one per cent."""
    moves = flow.step_weights(WMA(Beta(0.5)), 10_000)
    assert flow.contraction(moves, 1000.0)[-1] > 0.99
    assert flow.contraction(moves, 0.01)[-1] < 0.01


@pytest.mark.parametrize("teacher", [*POLICIES, WMA(Late(20)), EMA(momentum=0.9), EMA(horizon=0.3)], ids=repr)
@pytest.mark.parametrize("strength", [0.1, 5.0, 500.0])
def test_what_is_left_of_the_anchor_goes_by_the_sum_of_the_moves(teacher: Teacher, strength: float) -> None:
    """1 − S/(1+λ) ≤ ‖E^T‖/‖E⁰‖ ≤ exp(−S/(1+λ)), S = Σ ω_t: little is removed where λ ≫ S, most where λ ≪ S."""
    moves = flow.step_weights(teacher, 1000)
    share = moves[1:].sum() / (1 + strength)
    left = flow.contraction(moves, strength)[-1]
    assert 1 - share - 1e-12 <= left <= np.exp(-share) + 1e-12


@pytest.mark.parametrize(
    ("kernel", "power"),
    [(Beta(0.5), 0.5), (Beta(1.5), 1.5), (Uniform(), 1.0), (Early(1), 1.0), (Late(20), 21.0)],
)
def test_moves_of_a_kernel_add_up_to_a_multiple_of_the_log_of_the_horizon(
    kernel: Kernel, power: float
) -> None:
    """κ ~ t^(a−1) at the start makes Σ ω_t grow as a·log T, and Late(20) has a = 21."""
    sums = [flow.step_weights(WMA(kernel), steps)[1:].sum() for steps in (1000, 10_000)]
    assert (sums[1] - sums[0]) / np.log(10) == pytest.approx(power, rel=0.01)


def test_strength_far_above_the_log_of_the_horizon_does_not_save_the_bias_under_every_kernel() -> None:
    """At T = 10 000 and λ = 50 ≫ log T: Late(20) and a short EMA lose most of it, TRACER's kernel keeps it."""
    ends = {
        teacher: solve.distilled_keep(50.0) * flow.contraction(flow.step_weights(teacher, 10_000), 50.0)[-2]
        for teacher in (WMA(Late(20)), EMA(momentum=0.9), WMA(Beta(0.5)))
    }
    assert list(ends.values()) == pytest.approx([0.066, 0.0, 0.885], abs=5e-4)


def test_printed_comparison_of_the_dominance_proof_can_point_the_wrong_way() -> None:
    """The nearer anchor has the smaller error, yet the larger ‖a ψ − W*‖ that the printed proof compares."""
    best, start, teacher, strength = 1.0, 1.8, 0.5, 1.0
    problem = Problem(np.ones((1, 1)), np.full((1, 1), best), np.full((1, 1), start))
    share = solve.distilled_keep(strength)
    static = float(solve.distilled(problem, strength)[0, 0])
    dynamic = float(
        flow.student_step(problem.start_inside, np.full((1, 1), teacher), problem.best, strength, np.ones(1))[
            0, 0
        ]
    )
    assert abs(teacher - best) < abs(start - best)
    assert abs(dynamic - best) == pytest.approx(share * abs(teacher - best))
    assert abs(static - best) == pytest.approx(share * abs(start - best))
    assert abs(dynamic - best) < abs(static - best)
    assert abs(share * teacher - best) > abs(share * start - best)


def test_nearer_anchor_can_still_have_the_larger_loss() -> None:
    """Dominance is about weights: an anchor that errs in a strong direction costs more loss."""
    spectrum = np.array([3.0, 0.1])
    problem = Problem(np.diag(spectrum), np.zeros((1, 2)), np.array([[0.0, 1.0]]))
    anchor = np.array([[0.5, 0.0]])
    dynamic = flow.student_step(problem.start_inside, anchor, problem.best, 1.0, np.ones(2))
    static = solve.distilled(problem, 1.0)
    # The basis of a diagonal matrix is the identity up to signs, and the optimum is zero.
    assert np.linalg.norm(dynamic) < np.linalg.norm(static)
    assert np.linalg.norm(dynamic * spectrum) > np.linalg.norm(static * spectrum)


def test_ema_gap_vanishes_though_the_student_wanders_off() -> None:
    """Steps of 1/k vanish without the student converging; the gap goes all the same."""
    steps = 20_000
    path = np.cumsum(np.concatenate([[0.0], 1 / np.arange(1, steps + 1)]))[:, None]
    gap = path - flow.averaged(path, flow.step_weights(EMA(momentum=0.9), steps))
    assert path[-1] - path[steps // 2] > 0.69
    assert gap[-1] == pytest.approx(0.9 / 0.1 / steps, rel=1e-2)


def test_long_horizon_ema_keeps_a_larger_gap_than_wma() -> None:
    """Over a finite run, which teacher stays behind is a matter of its memory, not of its family."""
    problem = instance(np.random.default_rng(8)).problem
    ends = {
        name: flow.simulate(problem, teacher, strength=1.0, steps=500).gap[-1]
        for name, teacher in {
            "short": EMA(horizon=0.02),
            "long": EMA(horizon=1.0),
            "wma": WMA(Beta(0.5)),
        }.items()
    }
    assert ends["short"] < ends["wma"] < ends["long"]
