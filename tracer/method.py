"""A method answers five questions: what to minimise, who teaches, what moves, what holds back, what is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Literal

from tracer.errors import UserError, unknown
from tracer.finish import Finish, keep_student
from tracer.objective import Objective, Sum, Term
from tracer.teachers import Teacher
from tracer.tether import Tether
from tracer.tune import All, Tune


@dataclass(frozen=True)
class Stage:
    """One stretch of training with one objective."""

    minimise: Sum
    teacher: Teacher | None = None
    tune: Tune = field(default_factory=All)
    tether: Tether | None = None
    head: Literal["zeroshot", "random"] = "zeroshot"  # how a head starts, where the objective needs one
    share: float = 1.0  # length relative to the other stages

    @cached_property
    def objective(self) -> Objective:
        return Objective(self.minimise.weighted)

    def __post_init__(self) -> None:
        if "teacher" in self.objective.needs and self.teacher is None:
            raise ValueError(f"{self.objective!r} listens to a teacher and the stage has none")


@dataclass(frozen=True)
class Method:
    """Stages of training and what is kept of them. No stage means no training."""

    stages: tuple[Stage, ...]
    finish: Finish = keep_student
    title: str = ""
    paper: str = ""
    year: int | None = None


Recipe = Callable[..., Method]  # a function of keyword-only hyper-parameters; its signature is its flags


@cache
def methods() -> dict[str, Recipe]:
    """Every method: a file in `tracer/methods` that holds a function of its own name, or an installed plug-in."""
    package = import_module("tracer.methods")
    found: dict[str, Recipe] = {}
    for module in iter_modules(package.__path__):
        recipe = getattr(import_module(f"tracer.methods.{module.name}"), module.name, None)
        if recipe is not None:
            found[module.name] = recipe
    for point in entry_points(group="tracer.methods"):
        found[point.name] = point.load()
    return dict(sorted(found.items()))


def method(name: str, **options: Any) -> Method:
    """A method by name, with its hyper-parameters."""
    if name not in methods():
        raise unknown("method", name, methods())
    recipe = methods()[name]
    for option in options:
        if option not in inspect.signature(recipe).parameters:
            raise unknown(f"option of {name}", option, inspect.signature(recipe).parameters)
    try:
        return recipe(**options)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error


__all__ = ["Method", "Objective", "Recipe", "Stage", "Term", "method", "methods"]
