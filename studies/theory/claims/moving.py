"""Claims about a student with a moving teacher (appendix "Convergence Analysis")."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from studies.theory import descent, flow, solve
from studies.theory.definitions import defined_moves
from studies.theory.distance import excess, relative_distance, worst
from studies.theory.instances import Instance, average, duration, policy
from studies.theory.problem import Problem, least_squares
from studies.theory.spaces import Draw
from tracer.core.teachers import Teacher


def single_step(rng: Generator, draw: Draw) -> float:
    """On full weights, gradient descent from W^{t−1} on L_t ends at the printed W^t."""
    case, steps = draw(rng, well_conditioned=True), int(rng.integers(1, 6))
    problem, teacher = case.problem, policy(rng, steps)
    path = _path(case, teacher, steps)
    violations = []
    for t in range(1, steps + 1):
        anchor, before = path.teacher(t - 1), path.student(t - 1)
        reached = descent.distilled_objective(problem, case.strength, anchor).descend(before, steps=200)
        kept = case.strength / (1 + case.strength) * problem.task.inside(anchor)
        printed = problem.task.outside(before) + kept + solve.task_solution(problem) / (1 + case.strength)
        violations += [
            relative_distance(path.student(t), reached),
            relative_distance(path.student(t), printed),
        ]
    return worst(*violations)


def teacher_contraction(rng: Generator, draw: Draw) -> float:
    """With ω_t computed from the definition of the kernel, not by the policy."""
    case, steps = draw(rng), duration(rng)
    teacher = average(rng, steps)
    path, omega = _path(case, teacher, steps), defined_moves(teacher, steps)
    errors = path.teachers - case.problem.best
    predicted = (1 - omega[1:] / (1 + case.strength))[:, None, None] * errors[:-1]
    return relative_distance(errors[1:], predicted, scale=float(path.error[0]))


def student_tracking(rng: Generator, draw: Draw) -> float:
    case, steps = draw(rng), duration(rng)
    path = _path(case, policy(rng, steps), steps)
    kept = case.strength / (1 + case.strength)
    return relative_distance(
        path.students[1:] - case.problem.best,
        kept * (path.teachers[:-1] - case.problem.best),
        scale=float(path.error[0]),
    )


def bias_free_convergence(rng: Generator, draw: Draw) -> float:
    """‖E^t‖ = Π(1 − ω_k/(1+λ)) ‖E⁰‖ ≤ exp(−Σω_k/(1+λ)) ‖E⁰‖, so that the error vanishes if Σω_k = ∞."""
    case, steps = draw(rng), duration(rng)
    path = _path(case, policy(rng, steps), steps)
    total = np.cumsum(path.moves) - 1
    bound = np.exp(-total / (1 + case.strength)) * path.error[0]
    limit = solve.distilled_keep(case.strength) * bound[:-1]
    predicted = flow.contraction(path.moves, case.strength) * path.error[0]
    return worst(
        relative_distance(path.error, predicted),
        excess(path.error, bound),
        excess(path.bias[1:], limit, scale=float(path.error[0])),
    )


def linear_rate(rng: Generator, draw: Draw) -> float:
    """Geometric in the number of moves, for the error, and with its square for the excess loss."""
    case, steps = draw(rng), duration(rng)
    path = _path(case, policy(rng, steps), steps)
    due = path.moves[1:] > 0
    slowest = float(path.moves[1:][due].min()) if due.any() else 0.0
    moved = np.concatenate([[0], np.cumsum(due)])
    factor = (1 - slowest / (1 + case.strength)) ** moved
    losses = np.array([_excess_loss(case.problem, teacher) for teacher in path.teachers])
    return worst(excess(path.error, factor * path.error[0]), excess(losses, factor**2 * losses[0]))


def dominance(rng: Generator, draw: Draw) -> float:
    """Of two anchors the nearer one has the smaller error, and SD-WMA's anchor is never farther than the static one."""
    case, steps = draw(rng), duration(rng)
    problem, kept = case.problem, solve.distilled_keep(case.strength)
    ended = problem.task.coordinates(solve.distilled(problem, case.strength))
    static = float(np.linalg.norm(ended - problem.best))
    away = rng.normal(size=problem.best.shape)
    reach = float(rng.uniform()) * np.linalg.norm(problem.start_inside - problem.best) / np.linalg.norm(away)
    anchor = problem.best + reach * away
    whole = np.ones(problem.task.rank)
    dynamic = (
        flow.student_step(problem.start_inside, anchor, problem.best, case.strength, whole) - problem.best
    )
    path = _path(case, policy(rng, steps), steps)
    scale = float(path.error[0])
    return worst(
        relative_distance(static, kept * scale, scale=scale),
        relative_distance(dynamic, kept * (anchor - problem.best), scale=scale),
        excess(float(np.linalg.norm(dynamic)), static, scale=scale),
        excess(path.bias[1:], static, scale=scale),
    )


def gap_formula(rng: Generator, draw: Draw) -> float:
    """Gap and bias are proportional, and the path is monotone, so that the persistence bound applies."""
    case, steps = draw(rng), duration(rng)
    path = _path(case, policy(rng, steps), steps)
    shrunk = flow.contraction(path.moves, case.strength)[:-1]
    factor = -(1 - path.moves[1:]) / (1 + case.strength) * shrunk
    first = path.teachers[0] - case.problem.best
    travelled, scale = path.bias[0] - path.bias, float(path.error[0])
    return worst(
        relative_distance(path.students[1:] - path.teachers[1:], factor[:, None, None] * first, scale=scale),
        relative_distance(case.strength * path.gap[1:], (1 - path.moves[1:]) * path.bias[1:], scale=scale),
        excess(travelled[:-1], travelled[1:], scale=scale),
        excess(flow.start_mass(path.moves) * travelled, path.gap, scale=scale),
    )


def bias_is_persistence(rng: Generator, draw: Draw) -> float:
    """m_t^c ≤ ‖E^t‖/‖E⁰‖ ≤ m_t^{c·s}, m_t = ω_{0|t}, c = 1/(1+λ), s = ω̂/(−log(1−ω̂)), ω̂ the largest move."""
    case, steps = draw(rng), duration(rng)
    path = _path(case, policy(rng, steps), steps)
    mass, power = flow.start_mass(path.moves), 1 / (1 + case.strength)
    largest = float(path.moves[1:].max())
    slack = largest / -np.log1p(-largest) if largest > 0 else 1.0
    left = path.error / path.error[0]
    return worst(excess(mass**power, left), excess(left, mass ** (power * slack)))


def direction_by_direction(rng: Generator, draw: Draw) -> float:
    """One gradient step, or gradient flow for some time, per teacher move, on full weights."""
    case, steps = draw(rng, well_conditioned=True), int(rng.integers(1, 9))
    problem, teacher = case.problem, policy(rng, steps)
    steepest = descent.distilled_objective(problem, case.strength, problem.start).largest
    rate = float(rng.uniform(0.05, 0.9)) / steepest
    violations = []
    for pace, advance in ((flow.Descent(rate), _stepped), (flow.Flow(rate), _flowed)):
        path = flow.simulate(problem, teacher, strength=case.strength, steps=steps, pace=pace)
        student = anchor = problem.start
        for t, move in enumerate(flow.step_weights(teacher, steps)[1:], start=1):
            student = advance(descent.distilled_objective(problem, case.strength, anchor), student, rate)
            anchor = (1 - move) * anchor + move * student
            violations += [
                relative_distance(path.student(t), student),
                relative_distance(path.teacher(t), anchor),
            ]
    return worst(*violations)


def _path(case: Instance, teacher: Teacher, steps: int) -> flow.Path:
    return flow.simulate(case.problem, teacher, strength=case.strength, steps=steps)


def _excess_loss(problem: Problem, coordinates: Float[ndarray, "p r"]) -> float:
    """Loss of a map inside the task subspace above the least loss possible."""
    lifted = problem.task.lift(coordinates)
    return least_squares(problem, lifted) - least_squares(problem, solve.task_solution(problem))


def _stepped(objective: descent.Quadratic, weights: ndarray, rate: float) -> ndarray:
    return weights - rate * objective.gradient(weights)


def _flowed(objective: descent.Quadratic, weights: ndarray, time: float) -> ndarray:
    """exp of the flow by its power series: W(τ) = W − Σ_{k≥1} (−τ)^{k−1} τ/k! Q^{k−1} ∇f(W)."""
    term = -time * objective.gradient(weights)
    reached = weights + term
    for k in range(2, 40):
        term = -time / k * objective.act(term)
        reached = reached + term
    return reached
