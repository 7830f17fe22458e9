"""A lock ends with the process that holds it, whatever children it has."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tracer.storage.lock import lock


def test_a_forked_child_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    with lock(tmp_path / "lock") as held:
        assert held
        child = os.fork()
        if child == 0:  # as a loader worker that outlives its parent
            time.sleep(60)
            os._exit(0)
    try:
        with lock(tmp_path / "lock") as again:
            assert again
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
