"""A worker process of a sweep: runs experiments one after another until all are complete."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from tracer.api.evaluate import TestSets, score
from tracer.api.run import Machine, Observer, run
from tracer.core.errors import UserError
from tracer.evaluation.target import target
from tracer.models.export import export
from tracer.parallel import launched
from tracer.report.scored import ROWS, predictions
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run
from tracer.storage.atomic import write_text
from tracer.storage.lock import lock
from tracer.sweep.product import Sweep
from tracer.training.loop import Report

FAILED = "failed.txt"
warn = logging.getLogger(__name__).warning


class Orphaned(Exception):
    """The process that started this worker has ended."""


def work(
    sweep: Sweep,
    folder: Path,
    device: str,
    only: int | None = None,
    *,
    workers: int | None = 0,
    pause: float = 0.5,
) -> None:
    """Run and score every experiment that is not complete; returns when all are.

    Workers on several machines may share a folder; a per-run file lock prevents double work. `only` runs one experiment
    by its number, even if it has failed before. `workers` processes decode the images of a run.
    """
    begin(sweep, folder, device)
    waiting = list(sweep.by_folder(folder).items())
    if only is not None:
        waiting = waiting[only : only + 1]
        for place, _ in waiting:
            (place / FAILED).unlink(missing_ok=True)
    while waiting:
        for place, experiment in waiting:
            with lock(folder / ".locks" / place.name) as mine:
                if mine and not complete(place, sweep.tests):
                    attempt(experiment, place, device, sweep.tests, workers)
        waiting = [(place, experiment) for place, experiment in waiting if not complete(place, sweep.tests)]
        if waiting:
            time.sleep(pause)  # other workers hold the locks of the rest


def begin(sweep: Sweep, folder: Path, device: str) -> None:
    """Train and export the model that the experiments start from, once; other workers wait for it."""
    if sweep.start is None:
        return
    place = folder / "start"
    with lock(folder / ".locks" / "start", wait=True):
        start = finished(sweep.start, place, device)
        if not (place / "export").exists():
            export(start.student(), place / "export")


def attempt(
    experiment: Experiment, place: Path, device: str, tests: TestSets | None = None, workers: int | None = 0
) -> None:
    """Run and score an experiment; an error is written to FAILED in its folder and does not end the sweep."""
    try:
        trained = finished(experiment, place, device, workers)
        if tests is not None and not scored(place):
            with launched(device) as world:
                score((target(trained, "result", place.name),), tests, world, warn)
    except (UserError, RuntimeError, OSError, ValueError) as error:
        write_text(place / FAILED, f"{type(error).__name__}: {error}\n")


def finished(experiment: Experiment, place: Path, device: str, workers: int | None = 0) -> Run:
    """The finished run of an experiment; trains it, or resumes it, if it is not finished."""
    parent = os.getppid()

    def stop_if_orphaned(report: Report) -> None:
        del report
        if os.getppid() != parent:
            raise Orphaned(f"the process that started this one is gone: {place}")

    machine = Machine(device=device, workers=workers)
    return run(experiment, place, machine, Observer(report=stop_if_orphaned, warn=warn))


def ended(place: Path) -> bool:
    """Whether a run has a result or has failed."""
    return (place / "result.json").exists() or (place / FAILED).exists()


def scored(place: Path) -> bool:
    """Whether the result of a run was scored on the test sets."""
    return (predictions(place, "after") / ROWS).is_file()


def complete(place: Path, tests: TestSets | None) -> bool:
    """Whether nothing is left to do for a run."""
    return (place / FAILED).exists() or (ended(place) and (tests is None or scored(place)))
