"""The models that `tracer eval` measures: weights of a run, or a model by name, file or folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracer.models.export import attach_head
from tracer.models.registry import pretrained_tag
from tracer.models.student import Student, load
from tracer.models.task import Task, read_task
from tracer.runs.run import DESCRIPTION, Run


class Target(NamedTuple):
    """A model that is loaded when needed, with what its run or export says about it."""

    name: str
    student: Callable[[], Student]
    task: Task = Task()
    keep: Path | None = None  # folder for predictions and scores
    run: Run | None = None


def targets(
    model: str, pretrained: str, weights: str | None, out: Path | None = None, *, compare: bool = False
) -> tuple[Target, ...]:
    """The targets of `tracer eval MODEL`: a model; or of a run the named weights, by default its own and pretrained.

    With `compare` the pretrained weights come with any named ones. Scores of a run are written to its folder unless
    `out` is given.
    """
    run = run_at(model)
    if run is None:
        return (Target(model, partial(exported, model, pretrained), read_task(Path(model)), keep=out),)
    first = target(run, weights or run.weights, model, out)
    if weights == "pretrained" or (weights is not None and not compare):
        return (first,)
    return (first, target(run, "pretrained", f"{model} before", out and out / "pretrained"))


def exported(model: str, pretrained: str) -> Student:
    """A model by its name or folder, with the head that an export has beside it."""
    student = load(model, pretrained_tag(model, pretrained))
    attach_head(student, Path(model), read_task(Path(model)))
    return student


def target(run: Run, weights: str, name: str, out: Path | None = None) -> Target:
    """Named weights of a run."""
    if out is None:
        run.require_own_files()
    keep = out or run.folder / "predictions" / weights
    return Target(name, partial(run.student, weights), run.task(weights), keep, run)


def run_at(model: str) -> Run | None:
    """The run in this folder, or None if it is not one."""
    return Run.open(Path(model)) if (Path(model) / DESCRIPTION).is_file() else None
