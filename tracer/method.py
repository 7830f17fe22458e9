"""A method answers five questions: what to minimise, who teaches, what moves, what holds back, what is kept."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple, get_type_hints

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


class Option(NamedTuple):
    """A hyper-parameter of a method, as its signature and docstring declare it."""

    name: str
    type: Any
    default: Any
    help: str


def options(name: str) -> list[Option]:
    """The hyper-parameters of a method, read off its function."""
    if name not in methods():
        raise unknown("method", name, methods())
    recipe = methods()[name]
    hints, told = get_type_hints(recipe), dict(_ARGUMENT.findall(inspect.getdoc(recipe) or ""))
    return [
        Option(parameter.name, hints[parameter.name], parameter.default, told.get(parameter.name, ""))
        for parameter in inspect.signature(recipe).parameters.values()
    ]


def summary(name: str) -> str:
    """The first sentence of a method's docstring."""
    return (inspect.getdoc(methods()[name]) or "").split("\n")[0]


_ARGUMENT = re.compile(r"^ +(\w+): (.+)$", re.MULTILINE)  # a line of an "Args:" section

__all__ = ["Method", "Objective", "Option", "Recipe", "Stage", "Term", "method", "methods", "options", "summary"]
