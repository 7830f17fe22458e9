"""A run that is planned once, with its model loaded, and then trained in many forked processes.

Each of them is a real process that writes a folder of its own and can be killed in the middle of writing. What they
save is the planning and the loading, which take longer than the training of a tiny model.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from studies.faults.process import CRASH, Exit, ForkedProcess, Injection
from tracer.cli.app import main
from tracer.training.loop import Training

T = TypeVar("T")

RUN = "run"  # relative, so that a forked process finds the copy in its own working directory


class PreparedRun:
    """A planned run; `train` continues it in a copy of its folder, in a forked process."""

    def __init__(self, training: Training, finish: Callable[[Training], object]) -> None:
        self._training, self._finish = training, finish

    def train(self, place: Path, inject: Injection | None = None) -> Exit:
        """Train from the newest checkpoint in `place`/run, which is created if it is not there, to the end."""
        if not (place / RUN).exists():
            place.mkdir(parents=True, exist_ok=True)
            shutil.copytree(RUN, place / RUN, ignore=shutil.ignore_patterns(".lock"))

        def work() -> int:
            os.chdir(place)
            self._finish(self._training)
            return 0

        return ForkedProcess(work, inject).wait()


class _Done(BaseException):
    """Unwinds the command once everything has been tried."""


def with_prepared(arguments: Sequence[str], base: Path, use: Callable[[PreparedRun], T]) -> T | Exit:
    """What `use` returns for the run that `tracer ARGUMENTS` plans; how the command ended if it was refused."""
    results: list[Any] = []
    finish = Training.finish

    def instead(self: Training, callback: object = None) -> Any:
        del callback
        self._started = True
        results.append(use(PreparedRun(self, finish)))
        raise _Done

    base.mkdir(parents=True, exist_ok=True)
    here, told, code = Path.cwd(), io.StringIO(), CRASH
    os.chdir(base)
    Training.finish = instead
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            code = main([*arguments, "--out", RUN])
    except _Done:
        return results[0]
    finally:
        Training.finish = finish
        os.chdir(here)
    return Exit(code, told.getvalue(), 0.0)
