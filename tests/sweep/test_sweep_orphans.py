"""`tracer sweep --jobs 2` is killed for good: its workers stop by themselves, and the same tables come out."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from test_sweep import mine as mine  # four runs of a model that trains in a second

from studies.faults.process import CommandProcess
from tracer.sweep import recipe, supervisor
from tracer.sweep.supervisor import sweep_progress
from tracer.sweep.tables import write_tables
from tracer.sweep.worker import work

STEPS = 60
CHILDREN = Path("/proc/self/task")

pytestmark = pytest.mark.skipif(not CHILDREN.exists(), reason="a process's children are read from /proc")


def awaited(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold, in two minutes at most."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.01)
    return holds()


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def running(process: int) -> bool:
    """Whether it goes on; one that has ended and that nobody has asked about is no more than a name."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


class ForkedWorker(CommandProcess):
    """In the place of `subprocess.Popen`: a worker that is forked, which spares the start of Python."""

    def __init__(self, command: list[str], stdout: IO[bytes], stderr: IO[bytes], env: dict[str, str]) -> None:
        assert command[1:3] == ["-m", "tracer"]

        def redirect() -> None:
            os.environ.update(env)
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)

        super().__init__(command[3:], redirect)

    def poll(self) -> int | None:
        return os.waitpid(self.child, os.WNOHANG)[0] or None


def killed(mine: str, folder: Path) -> list[int]:
    """Kill the sweep itself when both its workers are in the middle of a run; returns the workers."""
    command = ["sweep", mine, "--steps", str(STEPS), "--seeds", "1", "--jobs", "2", "--device", "cpu"]
    process = CommandProcess(
        [*command, "--out", str(folder)],
        lambda: setattr(supervisor, "subprocess", SimpleNamespace(Popen=ForkedWorker)),
    )
    begun = awaited(lambda: len(list(folder.glob("[!s]*/log.jsonl"))) == 2)
    workers = children(process.child) if begun else []
    process.kill()
    process.wait()
    return workers


def test_workers_stop_when_the_sweep_is_killed_and_another_goes_on(mine: str, tmp_path: Path) -> None:
    sweep, folder = recipe(mine)(steps=STEPS, seeds=1), tmp_path / "sweep"
    workers = killed(mine, folder)
    assert len(workers) == 2
    assert awaited(lambda: not any(map(running, workers))), "nobody is left behind"
    left = sweep_progress(sweep, folder)
    assert (left.done, left.failed) == (0, ()), "they were stopped, and that is no failure"
    assert all(
        "process that started this one is gone" in log.read_text()
        for log in (folder / ".logs").glob("worker-*.log")
    )
    work(sweep, folder, "cpu")
    tables = [file.read_bytes() for file in write_tables(sweep, folder)]
    aside = folder.rename(tmp_path / "disturbed")  # the same place again, so that names are the same
    shutil.copytree(aside / "start", folder / "start")
    work(sweep, folder, "cpu")
    assert [file.read_bytes() for file in write_tables(sweep, folder)] == tables
