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
from tracer.measure.answers import Key
from tracer.models.export import export
from tracer.parallel import launched
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run
from tracer.storage.atomic import write_text
from tracer.storage.lock import lock
from tracer.storage.room import FULL, DiskFull
from tracer.sweep.product import Sweep
from tracer.training.loop import Report

FAILED = "failed.txt"
PAUSE = 0.5  # seconds
warn = logging.getLogger(__name__).warning


class Orphaned(Exception):
    """The process that started this worker has ended."""


def work(
    sweep: Sweep, folder: Path, device: str, only: int | None = None, *, workers: int | None = 0
) -> None:
    """Run and score every experiment that is not complete; returns when all are.

    Workers on several machines may share a folder; a per-run file lock prevents double work. `only` runs one experiment
    by its number, even if it has failed before. `workers` processes decode the images of a run.
    """
    machine = Machine(device=device, workers=workers)
    if sweep.start is not None:  # trained and exported once; other workers wait for it
        place = folder / "start"
        with lock(folder / ".locks" / "start", wait=True):
            start = finished(sweep.start, place, machine)
            if not (place / "export").exists():
                export(start.student(), place / "export")
    waiting = list(sweep.by_folder(folder).items())
    if only is not None:
        waiting = waiting[only : only + 1]
        for place, _ in waiting:
            (place / FAILED).unlink(missing_ok=True)
    while waiting:
        for place, experiment in waiting:
            with lock(folder / ".locks" / place.name) as mine:
                if mine and not complete(place, sweep.tests):
                    attempt(experiment, place, machine, sweep.tests)
        waiting = [(place, experiment) for place, experiment in waiting if not complete(place, sweep.tests)]
        if waiting:
            time.sleep(PAUSE)  # other workers hold the locks of the rest


def attempt(experiment: Experiment, place: Path, machine: Machine, tests: TestSets | None) -> None:
    """Run and score an experiment; an error is written to FAILED in its folder and does not end the sweep.

    A full disk does: it is no fault of the run, and the next one would meet it too.
    """
    try:
        trained = finished(experiment, place, machine)
        if tests is not None and not scored(place, tests):
            with launched(machine.device) as world:
                score((target(trained, "result", place.name),), tests, world, warn)
            read_again()
    except (UserError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in FULL):
            raise
        write_text(place / FAILED, f"{type(error).__name__}: {error}\n")


def finished(experiment: Experiment, place: Path, machine: Machine) -> Run:
    """The finished run of an experiment; trains it, or resumes it, if it is not finished."""
    parent = os.getppid()

    def stop_if_orphaned(report: Report) -> None:
        del report
        if os.getppid() != parent:
            raise Orphaned(f"the process that started this one is gone: {place}")

    return run(
        experiment,
        place,
        machine,
        Observer(report=stop_if_orphaned, warn=warn, again="the same tracer sweep"),
    )


def ended(place: Path) -> bool:
    """Whether a run has a result or has failed."""
    return (place / "result.json").exists() or (place / FAILED).exists()


def scored(place: Path, tests: TestSets) -> bool:
    """Whether the result of a run was scored on these test sets, as they are now, each under its name and role."""
    run = Run.open(place)
    known = {(each.name, each.role, each.key) for each in run.answers("result").all(run.by("result"))}
    return known.issuperset(_asked(tests, run))


_questions: dict[
    object, frozenset[tuple[str, str, Key]]
] = {}  # in this process: data are read once for many runs


def read_again() -> None:
    """Look at the test sets anew when they are next asked for: they may have changed while they were scored."""
    _questions.clear()


def _asked(tests: TestSets, run: Run) -> frozenset[tuple[str, str, Key]]:
    """What the test sets ask of a run: names, roles and keys."""
    own = target(run, "result", run.folder.name)
    experiment = run.experiment
    reading = (experiment.data, *experiment.keywords.values(), repr(run.class_names))
    question = (tests, own.task, reading)
    if question not in _questions:
        opened = tests.suite_for(own).open(tests.allow_partial)
        _questions[question] = frozenset((each.shift.name, each.shift.role, each.key) for each in opened)
    return _questions[question]


def complete(place: Path, tests: TestSets | None) -> bool:
    """Whether nothing is left to do for a run; test sets that cannot be read are still to be scored, or refused."""
    if (place / FAILED).exists() or not ended(place):
        return (place / FAILED).exists()
    try:
        return tests is None or scored(place, tests)
    except UserError:
        return False
