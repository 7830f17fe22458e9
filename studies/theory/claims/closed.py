"""Claims about the loss and the closed forms (TRACER §3.2, §3.3; appendix up to "Geometric Interpretation").

Every closed form is compared with the printed formula, computed in another way (by a pseudo-inverse of X
instead of the thin basis), and with gradient descent.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from studies.theory import descent, solve
from studies.theory.distance import excess, relative_distance, worst
from studies.theory.problem import (
    Problem,
    cross_frobenius,
    least_squares,
    mmcl,
    separating_quadratic,
    trace_form,
)
from studies.theory.spaces import Draw


def trace_and_least_squares(rng: Generator, draw: Draw) -> float:
    case = draw(rng)
    problem, n = case.problem, case.images.shape[1]
    weights, penalty = rng.normal(size=case.image_map.shape), float(rng.uniform(0, 2))
    loss = mmcl(weights, case.text_map, case.images, case.texts, penalty)
    product = np.square(weights.T @ case.text_map).sum() / 2
    by_trace = trace_form(problem, weights) / (n * (n - 1)) + penalty * product
    squares = least_squares(problem, weights)
    parts = separating_quadratic(problem, weights) + trace_form(problem, weights)
    constant = float(np.square(problem.target).sum() / 2)
    return worst(
        relative_distance(loss, by_trace, scale=squares / (n * (n - 1))),
        relative_distance(squares, parts + constant),
        relative_distance(cross_frobenius(weights, case.text_map), product),
        float(np.abs(problem.target.sum(axis=1)).max()) / max(1.0, float(np.abs(problem.target).max())),
    )


def descent_lemma(rng: Generator) -> float:
    shape = (int(rng.integers(1, 5)), int(rng.integers(1, 8)))
    size = shape[0] * shape[1]
    factor = np.linalg.qr(rng.normal(size=(size, int(rng.integers(1, size + 1)))))[0]
    values = 10 ** rng.uniform(-0.4, 0.4, factor.shape[1])
    linear = factor @ rng.normal(size=factor.shape[1])

    def act(weights: ndarray) -> ndarray:
        return (factor @ (values * (factor.T @ weights.ravel()))).reshape(shape)

    objective = descent.Quadratic(act, linear.reshape(shape), float(values.min()), float(values.max()))
    start = rng.normal(size=shape)
    rate = float(rng.uniform(0.3, 1.7)) / objective.largest
    reached = objective.descend(start, rate=rate, steps=1000)
    outside = start.ravel() - factor @ (factor.T @ start.ravel())
    return relative_distance(reached.ravel(), outside + factor @ (factor.T @ linear / values))


def direct_finetuning(rng: Generator, draw: Draw) -> float:
    general, benign = draw(rng).problem, draw(rng, well_conditioned=True).problem
    reached = descent.direct_objective(benign).descend(benign.start, steps=200)
    inverse = _inverse(general)
    printed = general.start - (general.start @ general.inputs) @ inverse + general.target @ inverse
    return worst(
        relative_distance(solve.direct(general), printed),
        relative_distance(solve.direct(benign), reached),
    )


def l2_regularisation(rng: Generator, draw: Draw) -> float:
    general, benign = draw(rng), draw(rng, well_conditioned=True)
    reached = descent.l2_objective(benign.problem, benign.strength).descend(benign.image_map, steps=200)
    # (Y Xᵀ + λ W⁰)(X Xᵀ + λ I)⁻¹ = W⁰ + (Y − W⁰ X)(Xᵀ X + λ I)⁻¹ Xᵀ, an n × n system.
    inputs, start = general.images, general.image_map
    ridge = inputs.T @ inputs + general.strength * np.eye(inputs.shape[1])
    residual = general.problem.target - start @ inputs
    printed = start + np.linalg.solve(ridge, residual.T).T @ inputs.T
    return worst(
        relative_distance(solve.l2(general.problem, general.strength), printed),
        relative_distance(solve.l2(benign.problem, benign.strength), reached),
    )


def self_distillation(rng: Generator, draw: Draw) -> float:
    general, benign = draw(rng), draw(rng, well_conditioned=True)
    objective = descent.distilled_objective(benign.problem, benign.strength, benign.image_map)
    reached = objective.descend(benign.image_map, steps=200)
    problem, inverse, share = general.problem, _inverse(general.problem), 1 / (1 + general.strength)
    projected = (problem.start @ problem.inputs) @ inverse
    printed = problem.start - share * projected + share * (problem.target @ inverse)
    return worst(
        relative_distance(solve.distilled(problem, general.strength), printed),
        relative_distance(solve.distilled(benign.problem, benign.strength), reached),
    )


def l2_limits(rng: Generator, draw: Draw) -> float:
    """Both limits with their rates, and λ = 0 and λ = ∞ exactly."""
    case = draw(rng)
    problem, strength, spectrum = case.problem, case.strength, case.problem.task.spectrum
    solution, whole = solve.l2(problem, strength), float(np.linalg.norm(problem.start_inside - problem.best))
    from_direct = float(np.linalg.norm(solution - solve.direct(problem)))
    from_start = float(np.linalg.norm(solution - problem.start))
    strong, weak = float(spectrum[0]) ** 2, float(spectrum[-1]) ** 2
    return worst(
        excess(from_direct, whole * strength / (strength + weak), scale=whole),
        excess(whole * strength / (strength + strong), from_direct, scale=whole),
        excess(from_start, whole * strong / (strong + strength), scale=whole),
        excess(whole * weak / (weak + strength), from_start, scale=whole),
        relative_distance(solve.l2(problem, 0.0), solve.direct(problem)),
        relative_distance(solve.l2(problem, float("inf")), problem.start),
    )


def geometric_decomposition(rng: Generator, draw: Draw) -> float:
    case = draw(rng)
    problem, task, strength = case.problem, case.problem.task, case.strength
    pretrained, best = problem.start, solve.task_solution(problem)
    unseen = task.outside(rng.normal(size=(3, pretrained.shape[1])))
    violations = [
        float(abs(task.rank - case.rank)),
        relative_distance(task.inside(problem.inputs.T), problem.inputs.T),
        relative_distance(task.inside(unseen), np.zeros_like(unseen), scale=1.0),
        relative_distance(task.inside(task.inside(pretrained)), task.inside(pretrained)),
    ]
    keeps = {
        "direct": (solve.direct(problem), np.zeros(task.rank)),
        "l2": (solve.l2(problem, strength), strength / (np.square(task.spectrum) + strength)),
        "distilled": (solve.distilled(problem, strength), np.full(task.rank, strength / (1 + strength))),
    }
    for solution, keep in keeps.values():
        blend = keep * task.coordinates(pretrained) + (1 - keep) * task.coordinates(best)
        violations += [
            relative_distance(
                task.outside(solution), task.outside(pretrained), scale=float(np.linalg.norm(solution))
            ),
            relative_distance(task.coordinates(solution), blend),
            relative_distance(
                solution @ unseen.T, pretrained @ unseen.T, scale=float(np.linalg.norm(solution))
            ),
        ]
    violations.append(excess(solve.l2_keep(task.spectrum, strength), 1.0))
    return worst(*violations)


def _inverse(problem: Problem) -> Float[ndarray, "n d"]:
    """X⁺ without the thin basis; singular values of instances are above 1e-3 of the largest, or zero."""
    return np.linalg.pinv(problem.inputs, rtol=1e-8)
