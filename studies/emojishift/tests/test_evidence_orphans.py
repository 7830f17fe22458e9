"""The worker processes of `tracer evidence` end with their parent, even if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a process is seen in /proc")

SCRIPT = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from studies.emojishift.runner import start_process

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=start_process)
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


def test_a_killed_parent_leaves_no_process_behind(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # spawned processes import it
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
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
