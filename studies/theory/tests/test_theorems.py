"""Every theorem holds on random instances, and the instances are as varied as they claim to be."""

from __future__ import annotations

import numpy as np
import pytest

from studies.theory import definitions, distance, flow, instances
from studies.theory.claims.persistence import ending
from studies.theory.spaces import SPACES
from studies.theory.theorems import THEOREMS, Theorem, verify
from tracer.core.kernels import Beta, Late, Uniform
from tracer.core.teachers import EMA, WMA, Frozen

ABOUT_INPUTS = [theorem for theorem in THEOREMS if theorem.about_inputs]
FEATURES = ["random features", "tangent features"]


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_holds_on_random_instances(theorem: Theorem) -> None:
    (result,) = verify(40, seed=7, theorems=[theorem])
    assert result.worst <= 1e-8
    assert (result.name, result.instances) == (theorem.name, 40)


@pytest.mark.parametrize("space", FEATURES)
@pytest.mark.parametrize("theorem", ABOUT_INPUTS, ids=lambda theorem: theorem.name)
def test_holds_in_feature_space(theorem: Theorem, space: str) -> None:
    (result,) = verify(8, seed=7, theorems=[theorem], space=space)
    assert result.worst <= 1e-8
    assert (result.name, result.space) == (theorem.name, space)


def test_what_is_said_of_averages_alone_asks_for_no_inputs() -> None:
    """These are about arbitrary paths, so that a feature space would test nothing new."""
    assert {theorem.name for theorem in THEOREMS} - {theorem.name for theorem in ABOUT_INPUTS} == {
        "descent lemma",
        "unrolled average",
        "mass of θ₀",
        "EMA as a kernel",
        "finite-horizon persistence",
        "EMA collapse",
    }


def test_the_same_seed_finds_the_same_and_another_does_not() -> None:
    chosen = [theorem for theorem in THEOREMS if theorem.name in ("unrolled average", "L2 regularisation")]
    assert verify(5, seed=1, theorems=chosen) == verify(5, seed=1, theorems=chosen)
    assert verify(5, seed=1, theorems=chosen) != verify(5, seed=2, theorems=chosen)
    assert verify(5, seed=1, theorems=chosen)[1:] == verify(5, seed=1, theorems=chosen[1:])


def test_not_a_number_counts_as_found() -> None:
    values = iter([0.0, float("nan"), 0.0])
    (result,) = verify(3, theorems=[Theorem("broken", "", lambda rng: next(values), about_inputs=False)])
    assert np.isnan(result.worst)


def test_verification_needs_an_instance() -> None:
    with pytest.raises(ValueError, match="not 0"):
        verify(0)


def test_instances_are_tall_wide_full_and_deficient() -> None:
    rng = np.random.default_rng(0)
    drawn = [instances.instance(rng) for _ in range(200)]
    shapes = [(*case.images.shape, case.rank) for case in drawn]
    assert any(d > n for d, n, _ in shapes)
    assert any(d < n for d, n, _ in shapes)
    assert any(rank == d for d, _, rank in shapes)
    assert sum(rank < min(d, n) for d, n, rank in shapes) > 50
    assert all(np.linalg.matrix_rank(case.images) == case.rank for case in drawn)
    strengths = [case.strength for case in drawn]
    assert min(strengths) < 1e-2
    assert max(strengths) > 1e2


@pytest.mark.parametrize("space", FEATURES)
@pytest.mark.parametrize("well_conditioned", [False, True])
def test_features_are_tall_wide_deficient_and_as_well_conditioned_as_inputs(
    space: str, well_conditioned: bool
) -> None:
    rng = np.random.default_rng(0)
    drawn = [SPACES[space](rng, well_conditioned=well_conditioned) for _ in range(40)]
    assert any(case.images.shape[0] > case.images.shape[1] for case in drawn)
    assert well_conditioned or any(case.images.shape[0] < case.images.shape[1] for case in drawn)
    assert sum(case.rank < min(case.images.shape) for case in drawn) > 8
    for case in drawn:
        spectrum = np.linalg.svd(case.images, compute_uv=False)
        assert np.linalg.matrix_rank(case.images) == case.rank
        assert spectrum[0] / spectrum[case.rank - 1] <= (10**0.4 if well_conditioned else 1e3) * (1 + 1e-9)
        assert 10**-0.21 < spectrum[0] < 10**0.21


def test_tangent_features_are_the_ntk_of_a_network() -> None:
    """A tanh network of one output has its output bias for a parameter, whose slope is the same everywhere."""
    case = SPACES["tangent features"](np.random.default_rng(1))
    last = case.images[-1]
    np.testing.assert_allclose(last, last[0], rtol=1e-12)
    assert case.problem.inputs is case.images


def test_persistence_bound_says_something_on_nearly_every_instance() -> None:
    """Where ‖r‖ exceeds the signal the bound is negative, and any pull at all would satisfy it."""
    rng = np.random.default_rng(0)
    ends = [ending(rng) for _ in range(500)]
    assert np.mean([end.bound > 0 for end in ends]) > 0.97
    assert (
        max(end.residual / end.pull for end in ends if end.bound > 0) > 0.005
    )  # and is not all but quadratic


@pytest.mark.parametrize("kernel", [Beta(0.5), Uniform(), Late(2)], ids=repr)
@pytest.mark.parametrize("every", [2, 5])
def test_released_clock_moves_by_the_same_shares_at_any_interval(kernel: Beta, every: int) -> None:
    """ω_j = α_j / Σ_{i≤j} α_i for the j-th move, α on the grid of all T steps: fewer moves, the same shares."""
    steps = 42  # moves after 1, N + 1, …, 41 and once more after 42
    densely = flow.step_weights(WMA(kernel, clock="updates"), steps)
    sparsely = flow.step_weights(WMA(kernel, every=every, clock="updates"), steps)
    defined = definitions.defined_moves(WMA(kernel, every=every, clock="updates"), steps)
    moved = [0, *range(1, steps, every), steps]
    np.testing.assert_allclose(sparsely[moved], densely[: len(moved)], rtol=1e-14)
    np.testing.assert_allclose(sparsely, defined, rtol=1e-13)
    np.testing.assert_array_equal(sparsely[2 : every + 1], 0.0)


def test_clocks_of_the_running_mean_by_hand() -> None:
    """Uniform, every 3 of 10: by progress ω = 3/4, 3/7, 3/10 and 1/11; by the released clock 1/2, 1/3, 1/4, 1/5."""
    expected = {
        "progress": {3: 3 / 4, 6: 3 / 7, 9: 3 / 10, 10: 1 / 11},
        "updates": {1: 1 / 2, 4: 1 / 3, 7: 1 / 4, 10: 1 / 5},
    }
    for clock in instances.CLOCKS:
        defined = definitions.defined_moves(WMA(Uniform(), every=3, clock=clock), 10)
        np.testing.assert_allclose(
            defined, [expected[clock].get(k, float(k == 0)) for k in range(11)], rtol=1e-15
        )


def test_policies_are_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    drawn = [instances.policy(rng, 30) for _ in range(200)]
    assert {type(teacher) for teacher in drawn} == {WMA, EMA, Frozen}
    averages = [teacher for teacher in drawn if isinstance(teacher, WMA)]
    assert {type(teacher.kernel).__name__ for teacher in averages} >= {"Beta", "Uniform", "Early", "Late"}
    assert {teacher.every for teacher in averages} == {1, 2, 3, 4, 5}
    assert {(teacher.clock, teacher.every > 1) for teacher in averages} == {
        ("progress", False),
        ("progress", True),
        ("updates", False),
        ("updates", True),
    }


def test_measures_of_distance() -> None:
    assert distance.relative_distance(np.array([3.0, 4.0]), np.array([0.0, 0.0])) == 1.0
    assert distance.relative_distance(1.0, 1.0 + 1e-3, scale=10.0) == pytest.approx(1e-4)
    assert distance.relative_distance(np.zeros(2), np.zeros(2)) == 0.0
    assert distance.excess(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == 0.0
    assert distance.excess(np.array([1.0, 3.0]), np.array([1.0, 2.0])) == 0.5
    assert np.isnan(distance.relative_distance(np.array([np.nan]), np.array([1.0])))
    assert np.isnan(distance.excess(np.array([np.nan]), np.array([1.0])))
    assert np.isnan(distance.worst(1.0, float("nan"), 2.0))
