"""TERM, HUP, USR1 and INT to a process or its group, at random steps, with and without workers; bits compared."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from studies.faults.process import CommandProcess
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import STEPS, Workspace, difference
from tracer.training.learner import Learner

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT)
PAUSE = 0.05  # seconds that a step takes longer


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """The run saves, exits with 128 + n, says how to go on, and ends in the same bits when it is resumed."""
    cases = [*product(SIGNALS, (False, True), (0, 2))] * workspace.count(1, 3)
    for number, group, workers in workspace.sample(2, cases):
        step = workspace.rng.randint(1, STEPS - 2)
        what = f"{number.name} to the {'group' if group else 'process'} with {workers} workers at step {step}"
        yield _signalled(workspace, what, number, group=group, workers=workers, step=step)


def _signalled(
    workspace: Workspace, what: str, number: signal.Signals, *, group: bool, workers: int, step: int
) -> Verdict:
    run = workspace.new_path("signalled")
    mark = workspace.new_path("reached")
    process = CommandProcess(
        workspace.train_arguments(run, workers=workers, save_every=None), lambda: _prepare(mark, step)
    )
    deadline = time.monotonic() + 120
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    (os.killpg if group else os.kill)(process.child, number)
    ended = process.wait()
    if ended.code != 128 + number or "Go on with: tracer resume" not in ended.output:
        return lost(what, ended.tail)
    if not any((run / "resume").glob("step-*")):
        return lost(what, "nothing was saved")
    resumed = workspace.train_or_resume(run)
    wrong = resumed.tail if resumed.code else difference(run, workspace.finished_run)
    return lost(what, wrong) if wrong else survived(what)


def _prepare(mark: Path, step: int) -> None:
    """A process group of its own, as a shell or a scheduler makes one, and slower steps, the first at `step` marked."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    original = Learner.step

    def slow(self: Learner, number: int, batch: object) -> object:
        if number >= step:
            mark.touch()
        time.sleep(PAUSE)
        return original(self, number, batch)  # pyright: ignore[reportArgumentType]

    Learner.step = slow  # pyright: ignore[reportAttributeAccessIssue]
