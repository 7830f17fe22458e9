"""Clocks that jump forwards and backwards, during a run and before it is resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from studies.faults.injection import after_rename, kill_self
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import STEPS, Workspace, difference

YEAR = 365 * 86400.0


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """The clock changes no bit of a run."""
    for _ in range(workspace.count(1, 10)):
        run, seed = workspace.new_path("clock"), workspace.rng.randrange(1 << 30)
        step = workspace.rng.randrange(2, STEPS, 2)
        workspace.train_or_resume(run, inject=lambda s=seed, n=step: _jump_and_kill(s, n))
        shift = workspace.rng.uniform(-30, 30) * YEAR
        _age(run, shift)
        what = f"jumps with seed {seed}, killed at step {step}, files aged by {shift / YEAR:.1f} years"
        result = workspace.train_or_resume(run, inject=lambda s=seed: jump(s + 1))
        wrong = result.tail if result.code else difference(run, workspace.finished_run)
        yield lost(what, wrong) if wrong else survived(what)


def jump(seed: int) -> None:
    """Let every call of the clock return a time up to thirty years off."""
    rng, original = Random(seed), time.time

    def jumping() -> float:
        return max(1.0, original() + rng.uniform(-30, 30) * YEAR)

    time.time = jumping
    time.time_ns = lambda: int(jumping() * 1e9)


def _jump_and_kill(seed: int, step: int) -> None:
    jump(seed)
    after_rename(f"step-{step:09d}", kill_self)


def _age(run: Path, seconds: float) -> None:
    """Shift the modification time of every file, some forwards and some backwards."""
    for path in run.rglob("*"):
        when = max(1.0, path.stat().st_mtime + seconds * (1 if path.name > "m" else -1))
        os.utime(path, (when, when))
