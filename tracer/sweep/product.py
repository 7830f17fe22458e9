"""Experiments that differ in what is studied and in nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError, unknown
from tracer.methods.base import method, options
from tracer.runs.experiment import Experiment, Settings

START = "@start"  # as a model: what the sweep's own first experiment has made
SETTINGS = {field.name for field in fields(Settings)}


@dataclass(frozen=True)
class Sweep:
    """Experiments to run, and one to run before them where they start from its result."""

    experiments: tuple[Experiment, ...]
    start: Experiment | None = None

    def __post_init__(self) -> None:
        if not self.experiments:
            raise UserError("a sweep without experiments: every setting needs at least one value")
        if self.start is None and any(experiment.model == START for experiment in self.experiments):
            raise ValueError(f"experiments begin from {START} and the sweep has none")

    def placed(self, folder: Path) -> dict[Path, Experiment]:
        """Each experiment by the folder of its run; the same experiment met twice is run once."""
        made = str(folder / "start" / "export")
        return {
            folder / experiment.id: replace(experiment, model=made)
            if experiment.model == START
            else experiment
            for experiment in self.experiments
        }


def product(recipe: Experiment | Callable[[], Experiment], **values: Iterable[Any]) -> tuple[Experiment, ...]:
    """Every combination of the values, the last name varying fastest.

    A name is a setting (`lr`, `seed`, `method`) or an option of the method (`beta`, `strength`):

        product(recipe, beta=[0.2, 0.5, 1.0], seed=range(3))
    """
    base = recipe if isinstance(recipe, Experiment) else recipe()
    names = list(values)
    combinations = itertools.product(*(list(choices) for choices in values.values()))
    return tuple(varied(base, **dict(zip(names, chosen, strict=True))) for chosen in combinations)


def varied(base: Experiment, **values: Any) -> Experiment:
    """The experiment with some settings and options changed; an unknown name is refused, a bad value too."""
    name = values.get("method", base.method)
    known = {option.name for option in options(name)}
    changed = {key: value for key, value in values.items() if key in SETTINGS or key == "method"}
    asked = {key: value for key, value in values.items() if key not in changed}
    for key in asked:
        if key not in known:
            raise unknown(f"setting, or option of {name},", key, known | SETTINGS)
    kept = {key: value for key, value in base.options.items() if key in known}
    made = replace(base, **changed, options=kept | asked)
    method(made.method, **made.options)
    return made
