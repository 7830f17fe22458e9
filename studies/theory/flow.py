"""SD-WMA: a student distilled from a moving average of itself, solved inside the task subspace.

    L_t(W) = ½‖W X − Y‖² + (λ/2)‖W X − ψ^{t−1} X‖²,     ψ^t = (1 − ω_t) ψ^{t−1} + ω_t W^t,     ψ⁰ = W⁰

The r directions of the task subspace are independent, and outside it nothing moves. The weights ω_t come from
the policies that training uses (`tracer.core.teachers`).
Reference: TRACER, appendix "Dynamic Self-Distillation: WMA Details and Convergence".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from studies.theory.problem import Problem
from studies.theory.solve import distilled_keep
from tracer.core.teachers import Teacher, advance

Pace = Callable[[Float[ndarray, " r"], float], Float[ndarray, " r"]]
"""(spectrum, λ) → the share of the distance to the minimiser of L_t that one step covers, per direction."""


def exact(spectrum: Float[ndarray, " r"], strength: float) -> Float[ndarray, " r"]:
    """The student solves L_t at every step, as the paper's single-step solution does."""
    return np.ones_like(spectrum)


@dataclass(frozen=True)
class Descent:
    """One gradient step on L_t with this rate γ: γ(1+λ)σ² of the way."""

    rate: float

    def __call__(self, spectrum: Float[ndarray, " r"], strength: float) -> Float[ndarray, " r"]:
        return self.rate * (1 + strength) * np.square(spectrum)


@dataclass(frozen=True)
class Flow:
    """Gradient flow on L_t for this long: 1 − exp(−(1+λ)σ² time) of the way; `exact` is its limit."""

    time: float

    def __call__(self, spectrum: Float[ndarray, " r"], strength: float) -> Float[ndarray, " r"]:
        return -np.expm1(-self.time * (1 + strength) * np.square(spectrum))


@dataclass(frozen=True)
class Path:
    """A run of T steps in coordinates of the task subspace; index 0 is the pretrained state."""

    problem: Problem
    students: Float[ndarray, "times p r"]
    teachers: Float[ndarray, "times p r"]
    moves: Float[ndarray, " times"]  # ω_t, with ω_0 = 1: the average starts at the pretrained state

    @property
    def gap(self) -> Float[ndarray, " times"]:
        """‖W^t − ψ^t‖: the distance between student and teacher."""
        return _norms(self.students - self.teachers)

    @property
    def error(self) -> Float[ndarray, " times"]:
        """‖E^t‖ = ‖(ψ^t − W*)P‖."""
        return _norms(self.teachers - self.problem.best)

    @property
    def bias(self) -> Float[ndarray, " times"]:
        """‖(W^t − W*)P‖: the distance of the student from the task solution."""
        return _norms(self.students - self.problem.best)

    def student(self, step: int) -> Float[ndarray, "p d"]:
        return self._weights(self.students[step])

    def teacher(self, step: int) -> Float[ndarray, "p d"]:
        return self._weights(self.teachers[step])

    def _weights(self, coordinates: Float[ndarray, "p r"]) -> Float[ndarray, "p d"]:
        return self.problem.start + self.problem.task.lift(coordinates - self.problem.start_inside)


def simulate(problem: Problem, teacher: Teacher, *, strength: float, steps: int, pace: Pace = exact) -> Path:
    """The path of student and teacher from W⁰ under a teacher policy."""
    share = pace(problem.task.spectrum, strength)
    moves = step_weights(teacher, steps)
    students = np.empty((steps + 1, *problem.best.shape))
    teachers = np.empty_like(students)
    students[0] = teachers[0] = problem.start_inside
    for t in range(1, steps + 1):
        students[t] = student_step(students[t - 1], teachers[t - 1], problem.best, strength, share)
        teachers[t] = teachers[t - 1] + moves[t] * (students[t] - teachers[t - 1])
    return Path(problem, students, teachers, moves)


def student_step(
    student: Float[ndarray, "p r"],
    anchor: Float[ndarray, "p r"],
    best: Float[ndarray, "p r"],
    strength: float,
    share: Float[ndarray, " r"],
) -> Float[ndarray, "p r"]:
    """One step toward the minimiser of L_t inside the subspace, (λ ψ + W*) / (1 + λ)."""
    minimiser = best + distilled_keep(strength) * (anchor - best)
    return student + share * (minimiser - student)


def step_weights(teacher: Teacher, steps: int) -> Float[ndarray, " times"]:
    """ω_t of a policy at every step of a run, 0 where the teacher does not move, as in `teachers.Shadow`."""
    moves, mass = np.zeros(steps + 1), teacher.start(steps)
    moves[0] = 1.0
    for step in range(1, steps + 1):
        moves[step], mass = advance(teacher, mass, step, steps)
    return moves


def averaged(
    students: Float[ndarray, "times ..."], moves: Float[ndarray, " times"]
) -> Float[ndarray, "times ..."]:
    """ψ^t along a path of students."""
    teachers = np.array(students, dtype=float)
    for t in range(1, len(moves)):
        teachers[t] = teachers[t - 1] + moves[t] * (students[t] - teachers[t - 1])
    return teachers


def contraction(moves: Float[ndarray, " times"], strength: float) -> Float[ndarray, " times"]:
    """‖E^t‖ / ‖E⁰‖ as predicted: Π_{k≤t} (1 − ω_k / (1+λ)), for a student that solves each step exactly."""
    factors = 1 - moves / (1 + strength)
    factors[0] = 1.0
    return np.cumprod(factors)


def start_mass(moves: Float[ndarray, " times"]) -> Float[ndarray, " times"]:
    """ω_{0|t} = Π_{k≤t} (1 − ω_k): the weight of the pretrained state in ψ^t."""
    factors = 1 - moves
    factors[0] = 1.0
    return np.cumprod(factors)


def _norms(stack: Float[ndarray, "t p r"]) -> Float[ndarray, " t"]:
    return np.sqrt(np.square(stack).sum(axis=(1, 2)))
