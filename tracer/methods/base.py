"""A method: its objectives, teacher, trainable parameters, regularizer and final weights.

Every file in this folder with a function of its own name, annotated `-> Method`, is a method; see `methods`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, NamedTuple, get_type_hints

from tracer.core.errors import UserError, unknown
from tracer.core.objective import Objective, Sum
from tracer.core.regularizers import Regularizer
from tracer.core.teachers import Buffers, Teacher
from tracer.core.validation import require
from tracer.core.weights import Weights
from tracer.methods.heads import InitialHead, ZeroShot
from tracer.methods.text_probes import Probe
from tracer.models.trainable import All, HeadOnly, Tune

Merge = Callable[[Weights, Sequence[Weights]], Weights]  # (start, each replica) -> merged weights


@dataclass(frozen=True)
class Stage:
    """A part of training with one objective."""

    minimise: Sum
    teacher: Teacher | Callable[[int], Teacher] | None = None  # a function of the number of steps, or fixed
    buffers: Buffers = "copy"  # what the teacher does with BatchNorm statistics when it moves
    tune: Tune = field(default_factory=All)
    regularizer: Regularizer | None = None
    head: InitialHead = field(default_factory=ZeroShot)  # used if the objective needs a head
    probe: Probe | None = None  # further texts, if the objective needs them
    anchors: str = ""  # data of the second stream of pairs, if the objective needs one
    rate: float = 1.0  # learning rate relative to the run's
    share: float = 1.0  # length relative to the other stages; 0: the head is initialised and not trained
    distill_pairs: int = 1  # show the teacher every k-th pair of a batch; approximate, cheaper

    @cached_property
    def objective(self) -> Objective:
        return Objective(self.minimise.weighted)

    def policy(self, steps: int) -> Teacher | None:
        """The teacher's policy in a stage of `steps` steps."""
        return self.teacher(steps) if callable(self.teacher) else self.teacher

    def __post_init__(self) -> None:
        if "teacher" in self.objective.needs and self.teacher is None:
            raise ValueError(f"{self.objective!r} needs a teacher and the stage has none")
        if "probe" in self.objective.needs and self.probe is None:
            raise ValueError(f"{self.objective!r} needs probe texts and the stage has none")
        if self.distill_pairs < 1:
            raise ValueError(f"distill-pairs {self.distill_pairs}: expected 1 or more; 1 is all pairs")


@dataclass(frozen=True)
class Replicas:
    """Several students trained side by side, merged every `epochs` epochs and at the end of a stage."""

    count: int
    merge: Merge
    epochs: float = 1.0

    def __post_init__(self) -> None:
        if self.count < 2:
            raise ValueError(f"expected 2 or more replicas, not {self.count}")
        if self.epochs <= 0:
            raise ValueError(f"replicas are merged every {self.epochs} epochs: expected a positive number")

    def due(self, step: int, per_epoch: int) -> bool:
        """Whether the replicas are merged after this step, counted from 1."""
        return step % max(1, round(self.epochs * per_epoch)) == 0


class Trained(NamedTuple):
    """The weights at the end of training."""

    pretrained: Weights
    student: Weights
    teacher: Weights | None = None


Finish = Callable[[Trained], Weights]


def keep_student(trained: Trained) -> Weights:
    """The student at its last step."""
    return trained.student


def keep_teacher(trained: Trained) -> Weights:
    """The teacher: the averaged weights (EMA, SWA, CLIPood)."""
    if trained.teacher is None:
        raise UserError("this method keeps the teacher, and it has none")
    return trained.teacher


@dataclass(frozen=True)
class Method:
    """Stages of training and the final weights. A method without stages does not train."""

    stages: tuple[Stage, ...]
    finish: Finish = keep_student
    replicas: Replicas | None = None
    title: str = ""
    paper: str = ""
    year: int | None = None
    matter: tuple[str, ...] = ()  # the hyper-parameters that decide most, settings included
    name: str = ""  # of its recipe
    options: Mapping[str, Any] = field(default_factory=dict)  # arguments of its recipe

    @property
    def needs(self) -> frozenset[str]:
        """The union of what the stages' objectives need."""
        return frozenset().union(*(stage.objective.needs for stage in self.stages))

    def regularized(self, regularizer: Regularizer) -> Method:
        """The same method with another regularizer on every stage."""
        heads_only = bool(self.stages) and all(isinstance(stage.tune, HeadOnly) for stage in self.stages)
        if heads_only and not getattr(regularizer, "head", True):
            name = type(regularizer).__name__.lower()
            raise UserError(
                f"--regularizer {name} acts on pretrained weights and method {self.name} trains only a head: "
                f"leave it out, or give {name}:head=true"
            )
        return replace(self, stages=tuple(replace(stage, regularizer=regularizer) for stage in self.stages))


Recipe = Callable[..., Method]  # a function of keyword-only hyper-parameters; its signature is its flags


@cache
def methods() -> dict[str, Recipe]:
    """Every method by name: files in `tracer/methods`, and plug-ins (entry points in the group tracer.methods)."""
    package = import_module("tracer.methods")
    recipes: dict[str, Recipe] = {}
    for module in iter_modules(package.__path__):
        if module.name == "__main__":  # is run, and Python warns if it was imported before
            continue
        recipe = getattr(import_module(f"tracer.methods.{module.name}"), module.name, None)
        if inspect.isfunction(recipe) and get_type_hints(recipe).get("return") is Method:
            recipes[module.name] = _recorded(module.name, recipe)
    for point in entry_points(group="tracer.methods"):
        recipes[point.name] = _recorded(point.name, point.load())
    return dict(sorted(recipes.items()))


def _recorded(name: str, recipe: Recipe) -> Recipe:
    """The recipe with its options checked, which are recorded with its name in the method that it returns."""

    @wraps(recipe)
    def build(**options: Any) -> Method:
        hints = get_type_hints(recipe)
        for option, value in options.items():
            if option not in inspect.signature(recipe).parameters:
                raise unknown(f"option of {name}", option, inspect.signature(recipe).parameters)
            require(f"{option} of {name}", value, hints[option])
            if isinstance(value, float) and not math.isfinite(value):
                raise UserError(f"{option} of {name} {value}: expected a finite number")
        return replace(recipe(**options), name=name, options=options)

    return build


def _recipe(name: str) -> Recipe:
    if name not in methods():
        raise unknown("method", name, methods())
    return methods()[name]


def method(name: str, **options: Any) -> Method:
    """A method by name, with its hyper-parameters."""
    recipe = _recipe(name)
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
    """The hyper-parameters of a method: the arguments of its function."""
    recipe = _recipe(name)
    hints, descriptions = get_type_hints(recipe), arguments(recipe.__doc__)
    return [
        Option(parameter.name, hints[parameter.name], parameter.default, descriptions.get(parameter.name, ""))
        for parameter in inspect.signature(recipe).parameters.values()
    ]


def arguments(docstring: str | None) -> dict[str, str]:
    """The description of each argument in the "Args:" section of a docstring."""
    section = (docstring or "").partition("Args:\n")[2]
    entries = re.finditer(r"^( +)(\w+): (.+(?:\n\1 +.+)*)", section, re.MULTILINE)
    return {entry[2]: " ".join(entry[3].split()) for entry in entries}


def summary(name: str) -> str:
    """The first sentence of a method's docstring."""
    return (inspect.getdoc(methods()[name]) or "").split("\n")[0]
