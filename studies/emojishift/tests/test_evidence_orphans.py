"""The worker processes of `tracer evidence` end with their parent, even if it is killed."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from studies.emojishift.runner import start_process
from studies.faults.process import ForkedProcess
from tracer.storage.atomic import write_text

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a process is seen in /proc")


def test_a_killed_parent_leaves_no_process_behind(tmp_path: Path) -> None:
    file = tmp_path / "child"

    def wait_for_child() -> int:
        pool = ProcessPoolExecutor(1, get_context("fork"), initializer=start_process)
        write_text(file, str(pool.submit(os.getpid).result()))
        time.sleep(600)
        return 0

    parent, deadline = ForkedProcess(wait_for_child), time.monotonic() + 120
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child = int(file.read_text())
    assert alive(child)
    parent.kill()
    parent.wait()
    for _ in range(300):
        if not alive(child):
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the child lives on")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
