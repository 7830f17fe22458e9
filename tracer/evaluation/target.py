"""The models that `tracer eval` measures: weights of a run, or a model by name, file or folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracer.core.errors import UserError
from tracer.data.place import remember_named
from tracer.models.download import fetch_beside
from tracer.models.export import PIXELS_FILE, attach_head, white_level_of
from tracer.models.registry import pretrained_tag
from tracer.models.source import FOLDER, HUB
from tracer.models.student import Student, load
from tracer.models.task import HEAD_FILE, TASK_FILE, Task, read_task
from tracer.runs.run import DESCRIPTION, Run
from tracer.storage.checksum import short_hash
from tracer.storage.safetensors_io import tensors_blake2b

NO_RUN = "--weights names weights of a run, and this is none: leave it out"


class Target(NamedTuple):
    """A model that is loaded when needed, with what its run or export says about it."""

    name: str
    student: Callable[[], Student]
    task: Task = Task()
    keep: Path | None = None  # folder for what it answers
    run: Run | None = None
    weights: str = ""  # of the run
    white_level: float | None = None  # of an export; a run has it among its settings

    def by(self, student: Student) -> str:
        """Who answers, for `Store`: the weights of the run, else those of the student with its task."""
        if self.run is not None:
            return self.run.by(self.weights)
        return short_hash([tensors_blake2b(student.state_dict()), asdict(self.task), student.config])


def targets(
    model: str, pretrained: str, weights: str | None, out: Path | None = None, *, compare: bool = False
) -> tuple[Target, ...]:
    """The targets of `tracer eval MODEL`: a model; or of a run the named weights, by default its own and pretrained.

    With `compare` the pretrained weights come with any named ones. Scores of a run are written to its folder unless
    `out` is given.
    """
    run = run_at(model)
    if run is None:
        if weights is not None:
            raise UserError(NO_RUN)
        remember_named((model,))
        folder = beside(model)
        student, level = partial(exported, model, pretrained), white_level_of(folder)
        return (Target(model, student, read_task(folder), keep=out, white_level=level),)
    first = target(run, weights or run.weights, model, out)
    if weights == "pretrained" or (weights is not None and not compare):
        return (first,)
    return (first, target(run, "pretrained", f"{model} before", out and out / "pretrained"))


def exported(model: str, pretrained: str) -> Student:
    """A model by its name or folder, with the head that an export has beside it."""
    student = load(model, pretrained_tag(model, pretrained))
    folder = beside(model)
    attach_head(student, folder, read_task(folder))
    student.white_level = white_level_of(folder)
    return student


def beside(model: str) -> Path:
    """The folder in which an export has its task and head: the model's own, or where the hub's files are kept."""
    if model.startswith(HUB):
        found = fetch_beside(model.removeprefix(HUB), (TASK_FILE, HEAD_FILE, PIXELS_FILE))
        return found or Path(model)
    return Path(model.removeprefix(FOLDER))


def target(run: Run, weights: str, name: str, out: Path | None = None) -> Target:
    """Named weights of a run."""
    if out is None:
        run.require_own_files()
    keep = out or run.answers(weights).folder
    return Target(name, partial(run.student, weights), run.task(weights), keep, run, weights)


def run_at(model: str) -> Run | None:
    """The run in this folder, or None if it is not one."""
    return Run.open(Path(model)) if (Path(model) / DESCRIPTION).is_file() else None
