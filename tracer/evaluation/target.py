"""What is measured: the weights of a run, or a model by name, file or folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracer.data.reading import Reading
from tracer.models.registry import pretrained_tag
from tracer.models.student import Student, load
from tracer.runs.experiment import Experiment
from tracer.runs.run import DESCRIPTION, Run


class Target(NamedTuple):
    """A model to be loaded when its turn comes, with what a run knows of it."""

    name: str
    student: Callable[[], Student]
    trained_on: tuple[str, ...] = ()
    temperature: float | None = None  # fitted on held-out images of these classes
    keep: Path | None = None  # where predictions and rows are written, if anywhere
    experiment: Experiment | None = None

    @property
    def templates(self) -> str | None:
        """The prompts that the run was told to learn from."""
        return None if self.experiment is None else self.experiment.templates

    def reading(self, spec: str, asked: Reading) -> Reading:
        """How `spec` is read: as asked for, and what is left open as the run has read its own data of the kind."""
        if self.experiment is None:
            return asked
        return asked.over(self.experiment, spec, self.experiment.data)


def targets(model: str, pretrained: str, weights: str | None, out: Path | None = None) -> tuple[Target, ...]:
    """What the words on the command line mean: a model, the weights of a run that are asked for, or what came out
    of it and, beside that, what went in.

    What is measured of a run is kept beside it unless `out` is given.
    """
    run = run_at(model)
    if run is None:
        return (Target(model, lambda: load(model, pretrained_tag(model, pretrained)), keep=out),)
    first = target(run, weights or "result", model, out)
    if weights is not None:
        return (first,)
    return (first, target(run, "pretrained", f"{model} before", out and out / "pretrained"))


def target(run: Run, weights: str, name: str, out: Path | None = None) -> Target:
    """Some weights of a run."""
    measured = run.result.get({"result": "after", "pretrained": "before"}.get(weights, ""), {})
    return Target(
        name,
        partial(run.student, weights),
        tuple(run.description["classes"]),
        measured.get("temperature"),
        out or run.folder / "predictions" / weights,
        run.experiment,
    )


def run_at(model: str) -> Run | None:
    """The run in this folder, if the words name one."""
    return Run.open(Path(model)) if (Path(model) / DESCRIPTION).is_file() else None
