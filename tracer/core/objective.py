"""Objectives as weighted sums of loss terms, written like the paper's equation.

For example `contrastive() + 0.9 * (3.9 * feature() + 0.5 * relational())`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from tracer.core.batch import Scene

# The outputs a term can request. Training computes only what some term needs.
NEEDS = frozenset({"text", "scores", "teacher", "probe", "projections", "features", "tokens", "anchors"})

Weight = float | Callable[[float], float]  # a number, or a function of training progress


class Loss(NamedTuple):
    """The weighted total that is minimised, and each term's own unweighted value."""

    total: Float[Tensor, ""]
    parts: dict[str, Tensor]


class Sum:
    """Base class of Term and Objective: implements `a + b` and `weight * a`."""

    @property
    def weighted(self) -> tuple[tuple[Weight, Term], ...]:
        raise NotImplementedError

    def __add__(self, other: Sum) -> Objective:
        return Objective(self.weighted + other.weighted) if isinstance(other, Sum) else NotImplemented

    def __mul__(self, weight: Weight) -> Objective:
        if isinstance(weight, Sum):  # a term is callable, but it is not a schedule
            return NotImplemented
        return Objective(tuple((_times(weight, inner), term) for inner, term in self.weighted))

    __rmul__ = __mul__


@dataclass(frozen=True)
class Term(Sum):
    """One loss formula over a scene, its name, and the outputs in NEEDS that it reads."""

    name: str
    formula: Callable[[Scene], Tensor]
    needs: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", frozenset(self.needs))
        if not self.needs <= NEEDS:
            raise ValueError(f"term {self.name} needs {sorted(self.needs - NEEDS)}; known: {sorted(NEEDS)}")

    @property
    def weighted(self) -> tuple[tuple[Weight, Term], ...]:
        """This term with weight 1: a term alone is an objective too."""
        return ((1.0, self),)

    def __call__(self, scene: Scene) -> Float[Tensor, ""]:
        return self.formula(scene)


class Objective(Sum):
    """A linear combination of terms. Terms with weight zero are dropped: they are not computed at all."""

    def __init__(self, weighted: tuple[tuple[Weight, Term], ...]) -> None:
        self._weighted = tuple((weight, term) for weight, term in weighted if weight != 0)
        names = [term.name for _, term in self._weighted]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"terms appear twice in one objective: {sorted(repeated)}")

    @property
    def weighted(self) -> tuple[tuple[Weight, Term], ...]:
        """The terms with their weights."""
        return self._weighted

    @property
    def needs(self) -> frozenset[str]:
        """What the terms together look at; nothing else is computed."""
        return frozenset().union(*(term.needs for _, term in self.weighted))

    def __call__(self, scene: Scene) -> Loss:
        if not self.weighted:
            raise ValueError("nothing to minimise: every term has weight zero")
        taught = scene.shown_to_teacher
        values = {term.name: term(taught if "teacher" in term.needs else scene) for _, term in self.weighted}
        weighted = [_at(weight, scene.progress) * values[term.name] for weight, term in self.weighted]
        return Loss(reduce(add, weighted), {name: value.detach() for name, value in values.items()})

    def __repr__(self) -> str:
        return " + ".join(f"{_label(weight)}{term.name}" for weight, term in self.weighted)


def _at(weight: Weight, progress: float) -> float:
    return weight(progress) if callable(weight) else weight


def _times(outer: Weight, inner: Weight) -> Weight:
    if outer == 0 or inner == 0:  # so that a schedule times zero is dropped too
        return 0.0
    if callable(outer) or callable(inner):
        return lambda progress: _at(outer, progress) * _at(inner, progress)
    return outer * inner


def _label(weight: Weight) -> str:
    if callable(weight):
        return "λ(t)·"
    return "" if weight == 1 else f"{weight:g}·"
