"""The models that `tracer eval` measures: weights of a run, or a model by name, file or folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracer.core.validation import fits
from tracer.data.place import remember_named
from tracer.models.export import attach_head, head_classes, white_level_of
from tracer.models.registry import pretrained_tag
from tracer.models.student import Student, load
from tracer.runs.run import DESCRIPTION, Run
from tracer.storage.checksum import short_hash
from tracer.storage.safetensors_io import tensors_blake2b


class Target(NamedTuple):
    """A model that is loaded when needed, with what its run says about it."""

    name: str
    student: Callable[[], Student]
    trained_on: tuple[str, ...] = ()
    temperature: float | None = None  # fitted on held-out images of these classes
    keep: Path | None = None  # folder for what it answers
    run: Run | None = None
    weights: str = ""  # of the run
    white_level: float | None = None  # of an export; a run has it among its settings

    @property
    def templates(self) -> tuple[str, ...] | None:
        """The prompts of the run, if it was given any: those that it began with, whatever their file holds by now."""
        given = self.run is not None and self.run.experiment.templates is not None
        return self.run.templates if self.run is not None and given else None

    def by(self, student: Student) -> str:
        """Who answers, for `Store`: the weights of the run, else those of the student with the classes of its head."""
        if self.run is not None:
            return self.run.by(self.weights)
        return short_hash([tensors_blake2b(student.state_dict()), list(self.trained_on), student.config])


def targets(
    model: str, pretrained: str, weights: str | None, out: Path | None = None, *, compare: bool = False
) -> tuple[Target, ...]:
    """The targets of `tracer eval MODEL`: a model; or of a run the named weights, by default result and pretrained.

    With `compare` the pretrained weights come with any named ones. Scores of a run are written to its folder unless
    `out` is given.
    """
    run = run_at(model)
    if run is None:
        remember_named((model,))
        student = partial(exported, model, pretrained)
        folder = Path(model)
        return (Target(model, student, head_classes(folder), keep=out, white_level=white_level_of(folder)),)
    first = target(run, weights or "result", model, out)
    if weights == "pretrained" or (weights is not None and not compare):
        return (first,)
    return (first, target(run, "pretrained", f"{model} before", out and out / "pretrained"))


def exported(model: str, pretrained: str) -> Student:
    """A model by its name or folder, with the head that an export has beside it."""
    student = load(model, pretrained_tag(model, pretrained))
    attach_head(student, Path(model))
    student.white_level = white_level_of(Path(model))
    return student


def target(run: Run, weights: str, name: str, out: Path | None = None) -> Target:
    """Named weights of a run."""
    if out is None:
        run.require_own_files()
    scores = run.result.get({"result": "after", "pretrained": "before"}.get(weights, ""))
    temperature = scores.get("temperature", 0.0) if isinstance(scores, dict) else 0.0
    return Target(
        name,
        partial(run.student, weights),
        tuple(run.description["classes"]),
        float(temperature) if fits(temperature, float) and 0 < temperature < math.inf else None,
        out or run.answers(weights).folder,
        run,
        weights,
    )


def run_at(model: str) -> Run | None:
    """The run in this folder, or None if it is not one."""
    return Run.open(Path(model)) if (Path(model) / DESCRIPTION).is_file() else None
