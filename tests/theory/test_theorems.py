"""Every theorem holds on random instances, and the instances are as varied as they claim to be."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.teachers import EMA, WMA, Frozen
from tracer.theory import instances
from tracer.theory.theorems import THEOREMS, Theorem, verify


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_holds_on_random_instances(theorem: Theorem) -> None:
    (result,) = verify(40, seed=7, theorems=[theorem])
    assert result.worst <= 1e-8
    assert (result.name, result.instances) == (theorem.name, 40)


def test_the_same_seed_finds_the_same_and_another_does_not() -> None:
    chosen = [theorem for theorem in THEOREMS if theorem.name in ("unrolled average", "L2 regularisation")]
    assert verify(5, seed=1, theorems=chosen) == verify(5, seed=1, theorems=chosen)
    assert verify(5, seed=1, theorems=chosen) != verify(5, seed=2, theorems=chosen)
    assert verify(5, seed=1, theorems=chosen)[1:] == verify(5, seed=1, theorems=chosen[1:])


def test_not_a_number_counts_as_found() -> None:
    values = iter([0.0, float("nan"), 0.0])
    (result,) = verify(3, theorems=[Theorem("broken", "", lambda rng: next(values))])
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


def test_policies_are_of_every_kind() -> None:
    rng = np.random.default_rng(0)
    drawn = [instances.policy(rng, 30) for _ in range(200)]
    assert {type(teacher) for teacher in drawn} == {WMA, EMA, Frozen}
    averages = [teacher for teacher in drawn if isinstance(teacher, WMA)]
    assert {type(teacher.kernel).__name__ for teacher in averages} >= {"Beta", "Uniform", "Early", "Late"}
    assert {teacher.every for teacher in averages} == {1, 2, 3, 4, 5}
    assert {teacher.clock for teacher in averages} == {"progress", "updates"}


def test_measures_of_distance() -> None:
    assert instances.apart(np.array([3.0, 4.0]), np.array([0.0, 0.0])) == 1.0
    assert instances.apart(1.0, 1.0 + 1e-3, scale=10.0) == pytest.approx(1e-4)
    assert instances.apart(np.zeros(2), np.zeros(2)) == 0.0
    assert instances.excess(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == 0.0
    assert instances.excess(np.array([1.0, 3.0]), np.array([1.0, 2.0])) == 0.5
    assert np.isnan(instances.apart(np.array([np.nan]), np.array([1.0])))
    assert np.isnan(instances.excess(np.array([np.nan]), np.array([1.0])))
    assert np.isnan(instances.worst(1.0, float("nan"), 2.0))
