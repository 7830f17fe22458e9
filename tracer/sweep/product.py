"""A sweep, and experiments with all combinations of some settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tracer.api.evaluate import TestSets
from tracer.core.errors import UserError, unknown
from tracer.methods.base import method, options
from tracer.runs.experiment import Experiment, Settings

START = "@start"  # as a model: the result of the sweep's start experiment
SETTINGS = {field.name for field in fields(Settings)}


@dataclass(frozen=True)
class Sweep:
    """Experiments, and optionally one that runs first and gives their initial model.

    Every finished run is scored on `tests`, if given; `published` then writes a page that compares the runs with
    published numbers.
    """

    experiments: tuple[Experiment, ...]
    start: Experiment | None = None
    tests: TestSets | None = None
    published: Callable[[dict[Path, Experiment]], str] | None = None

    def __post_init__(self) -> None:
        if not self.experiments:
            raise UserError("a sweep without experiments: every setting needs at least one value")
        if self.start is None and any(experiment.model == START for experiment in self.experiments):
            raise ValueError(f"experiments start from {START} and the sweep has no start experiment")

    def by_folder(self, folder: Path) -> dict[Path, Experiment]:
        """The experiments by the folder of their run; equal experiments share one run."""
        start_model = str(folder / "start" / "export")
        return {
            folder / experiment.id: replace(experiment, model=start_model)
            if experiment.model == START
            else experiment
            for experiment in self.experiments
        }


def product(base: Experiment, **values: Iterable[Any]) -> tuple[Experiment, ...]:
    """Experiments with every combination of the values; the last name varies fastest.

    A name is a setting (`lr`, `seed`, `method`) or an option of the method (`beta`, `strength`):

        product(base, beta=[0.2, 0.5, 1.0], seed=range(3))
    """
    combinations = itertools.product(*values.values())
    return tuple(_with_values(base, dict(zip(values, each, strict=True))) for each in combinations)


def _with_values(base: Experiment, values: dict[str, Any]) -> Experiment:
    """The experiment with other settings and options; unknown names and invalid values are errors."""
    name = values.get("method", base.method)
    known = {option.name for option in options(name)}
    settings = {key: value for key, value in values.items() if key in SETTINGS or key == "method"}
    new_options = {key: value for key, value in values.items() if key not in settings}
    for key in new_options:
        if key not in known:
            raise unknown(f"setting, or option of {name},", key, known | SETTINGS)
    base_options = {key: value for key, value in base.options.items() if key in known}
    experiment = replace(base, **settings, options=base_options | new_options)
    method(experiment.method, **experiment.options)  # validate the options
    return experiment
