"""Closed forms: ends and limits, thin work at scale, and refusals."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from studies.theory import descent, solve
from studies.theory.distance import relative_distance
from studies.theory.instances import instance
from studies.theory.problem import Problem
from studies.theory.subspace import spanned


def test_no_penalty_is_direct_and_an_infinite_one_moves_nothing() -> None:
    problem = instance(np.random.default_rng(0)).problem
    for strategy in (solve.l2, solve.distilled):
        assert relative_distance(strategy(problem, 0.0), solve.direct(problem)) == 0.0
        np.testing.assert_array_equal(strategy(problem, float("inf")), problem.start)


def test_solutions_minimise_their_objectives() -> None:
    case = instance(np.random.default_rng(1))
    problem, strength = case.problem, case.strength
    for objective, solution in (
        (descent.direct_objective(problem), solve.direct(problem)),
        (descent.l2_objective(problem, strength), solve.l2(problem, strength)),
        (
            descent.distilled_objective(problem, strength, problem.start),
            solve.distilled(problem, strength),
        ),
    ):
        assert np.linalg.norm(objective.gradient(solution)) < 1e-10 * np.linalg.norm(objective.linear)


def test_task_solution_is_the_smallest_of_all_solutions() -> None:
    problem = instance(np.random.default_rng(2)).problem
    smallest, other = solve.task_solution(problem), solve.direct(problem)
    np.testing.assert_allclose(smallest @ problem.inputs, other @ problem.inputs, atol=1e-9)
    assert np.linalg.norm(smallest) < np.linalg.norm(other)


def test_inputs_that_span_nothing_change_nothing() -> None:
    problem = Problem(np.zeros((5, 3)), np.ones((2, 3)), np.ones((2, 5)))
    assert problem.task.rank == 0
    np.testing.assert_array_equal(solve.direct(problem), problem.start)
    np.testing.assert_array_equal(solve.task_solution(problem), np.zeros((2, 5)))


def test_tolerance_decides_what_is_rank() -> None:
    inputs = np.diag([1.0, 1e-3, 1e-9])
    assert spanned(inputs).rank == 3
    assert spanned(inputs, tolerance=1e-6).rank == 2


def test_descent_outside_its_range_of_rates_is_refused() -> None:
    objective = descent.direct_objective(instance(np.random.default_rng(3)).problem)
    for rate in (0.0, 2 / objective.largest, 1.0 + 2 / objective.largest):
        with pytest.raises(ValueError, match="rate inside"):
            objective.descend(np.zeros(objective.linear.shape), rate=rate)


def test_negative_strength_is_refused() -> None:
    problem = instance(np.random.default_rng(0)).problem
    for strategy in (solve.l2, solve.distilled):
        with pytest.raises(ValueError, match="0 or more"):
            strategy(problem, -1.0)


def test_large_problems_are_thin_work() -> None:
    """A d × d matrix would take 1152 MB here; all arrays together stay below a tenth of that."""
    d, n, p = 12_000, 64, 32
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(d, n)), rng.normal(size=(p, n)), rng.normal(size=(p, d)))
    tracemalloc.start()
    began = time.perf_counter()
    solutions = [solve.direct(problem), solve.l2(problem, 1.0), solve.distilled(problem, 1.0)]
    spent = time.perf_counter() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert spent < 20  # a d × d pseudo-inverse takes many minutes
    np.testing.assert_allclose(solutions[0] @ problem.inputs, problem.target, atol=1e-8)
