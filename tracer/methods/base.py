"""A method answers five questions: what to minimise, who teaches, what moves, what holds back, what stays."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, NamedTuple, get_type_hints

from tracer.core.errors import UserError, unknown
from tracer.core.objective import Objective, Sum, Term
from tracer.core.regularizers import Regularizer
from tracer.core.teachers import Teacher
from tracer.core.validation import fits
from tracer.core.weights import Weights
from tracer.methods.finish import Finish, keep_student
from tracer.methods.heads import Start, ZeroShot
from tracer.methods.text_probes import Probe
from tracer.models.trainable import All, Tune

Merge = Callable[[Weights, Sequence[Weights]], Weights]  # (where all began, where each is) -> one


@dataclass(frozen=True)
class Stage:
    """One stretch of training with one objective."""

    minimise: Sum
    teacher: Teacher | Callable[[int], Teacher] | None = (
        None  # a function of the steps if its pace is a share
    )
    tune: Tune = field(default_factory=All)
    regularizer: Regularizer | None = None
    head: Start = field(default_factory=ZeroShot)  # how a head starts, where the objective needs one
    probe: Probe | None = None  # further texts, where the objective looks at them
    anchors: str = ""  # data of a second stream of pairs, where the objective learns from them
    rate: float = 1.0  # learning rate relative to the run's
    share: float = 1.0  # length relative to the other stages; 0: the head's start is all
    distill_every: int = 1  # listen to the teacher each so many steps, as many times as loudly; approximate

    @cached_property
    def objective(self) -> Objective:
        return Objective(self.minimise.weighted)

    def objective_at(self, step: int) -> Objective:
        """What step number `step`, counted from 0, minimises: the teacher has a say each `distill_every`."""
        if self.distill_every == 1:
            return self.objective
        return self._taught if (step + 1) % self.distill_every == 0 else self._alone

    @cached_property
    def _alone(self) -> Objective:
        return Objective(tuple((w, t) for w, t in self.objective.weighted if "teacher" not in t.needs))

    @cached_property
    def _taught(self) -> Objective:
        listening = ((w, t) for w, t in self.objective.weighted if "teacher" in t.needs)
        return self._alone + self.distill_every * Objective(tuple(listening))

    def policy(self, steps: int) -> Teacher | None:
        """The teacher's policy over a stage of so many steps."""
        return self.teacher(steps) if callable(self.teacher) else self.teacher

    def __post_init__(self) -> None:
        if "teacher" in self.objective.needs and self.teacher is None:
            raise ValueError(f"{self.objective!r} listens to a teacher and the stage has none")
        if "probe" in self.objective.needs and self.probe is None:
            raise ValueError(f"{self.objective!r} looks at further texts and the stage draws none")
        if self.distill_every < 1:
            raise ValueError(f"distill-every {self.distill_every}: a student distils each 1 or more steps")
        if self.distill_every > 1 and not self._alone.weighted:
            raise ValueError(f"{self.objective!r} leaves nothing to learn between two steps of distillation")
        apart = self.objective.needs - self._alone.needs - {"teacher"}
        if self.distill_every > 1 and apart:  # what the student computes stays the same, as DDP expects
            raise ValueError(
                f"distillation now and then may not ask for {sorted(apart)}, which all other steps lack"
            )


@dataclass(frozen=True)
class Replicas:
    """Several students side by side, merged every so many epochs and at the end of a stage."""

    count: int
    merge: Merge
    epochs: float = 1.0

    def __post_init__(self) -> None:
        if self.count < 2:
            raise ValueError(f"replicas are 2 or more, not {self.count}")
        if self.epochs <= 0:
            raise ValueError(f"replicas are merged every so many epochs, not every {self.epochs}")

    def due(self, step: int, per_epoch: int) -> bool:
        """Whether a merge follows this step (counted from 1)."""
        return step % max(1, round(self.epochs * per_epoch)) == 0


@dataclass(frozen=True)
class Method:
    """Stages of training and what is kept of them. No stage means no training."""

    stages: tuple[Stage, ...]
    finish: Finish = keep_student
    replicas: Replicas | None = None
    title: str = ""
    paper: str = ""
    year: int | None = None
    matter: tuple[str, ...] = ()  # the hyper-parameters that decide most, settings included

    @property
    def needs(self) -> frozenset[str]:
        """All that any stage's objective asks for."""
        return frozenset().union(*(stage.objective.needs for stage in self.stages))

    def regularized(self, regularizer: Regularizer) -> Method:
        """The same method with another regularizer on every stage."""
        return replace(self, stages=tuple(replace(stage, regularizer=regularizer) for stage in self.stages))


Recipe = Callable[..., Method]  # a function of keyword-only hyper-parameters; its signature is its flags


@cache
def methods() -> dict[str, Recipe]:
    """Every method: a file in `tracer/methods` with a function of its own name, or an installed plug-in."""
    package = import_module("tracer.methods")
    recipes: dict[str, Recipe] = {}
    for module in iter_modules(package.__path__):
        recipe = getattr(import_module(f"tracer.methods.{module.name}"), module.name, None)
        if inspect.isfunction(recipe) and get_type_hints(recipe).get("return") is Method:
            recipes[module.name] = recipe
    for point in entry_points(group="tracer.methods"):
        recipes[point.name] = point.load()
    return dict(sorted(recipes.items()))


def method(name: str, **options: Any) -> Method:
    """A method by name, with its hyper-parameters."""
    if name not in methods():
        raise unknown("method", name, methods())
    recipe = methods()[name]
    hints = get_type_hints(recipe)
    for option, value in options.items():
        if option not in inspect.signature(recipe).parameters:
            raise unknown(f"option of {name}", option, inspect.signature(recipe).parameters)
        if not fits(value, hints[option]) or (isinstance(value, float) and not math.isfinite(value)):
            raise UserError(f"{name}: {option} cannot be {value!r:.60}")
    try:
        return recipe(**options)
    except (ValueError, OverflowError) as error:
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
    hints, told = get_type_hints(recipe), arguments(recipe.__doc__)
    return [
        Option(parameter.name, hints[parameter.name], parameter.default, told.get(parameter.name, ""))
        for parameter in inspect.signature(recipe).parameters.values()
    ]


def arguments(docstring: str | None) -> dict[str, str]:
    """What the "Args:" section of a docstring says of each argument."""
    return dict(_ARGUMENT.findall((docstring or "").partition("Args:\n")[2]))


def summary(name: str) -> str:
    """The first sentence of a method's docstring."""
    return (inspect.getdoc(methods()[name]) or "").split("\n")[0]


_ARGUMENT = re.compile(r"^ +(\w+): (.+)$", re.MULTILINE)  # a line of an "Args:" section

__all__ = [
    "Merge",
    "Method",
    "Objective",
    "Option",
    "Recipe",
    "Replicas",
    "Stage",
    "Term",
    "arguments",
    "method",
    "methods",
    "options",
    "summary",
]
