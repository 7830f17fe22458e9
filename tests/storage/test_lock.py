"""A lock ends with the block or the process that holds it, whatever children it has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracer.storage.lock import lock


@contextmanager
def _sleeping_child(started: int) -> Iterator[int]:
    """The id of a forked process, as of a loader worker; it writes a byte to `started` once it runs."""
    child = os.fork()
    if child == 0:
        os.write(started, b".")
        time.sleep(60)
        os._exit(0)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_worker_that_outlives_its_parent_does_not_hold_the_lock(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.setpgid(0, 0)
        with lock(tmp_path / "lock") as held, _sleeping_child(writer):
            os.write(writer, b"h" if held else b"n")
            time.sleep(60)
        os._exit(0)
    try:
        said = b""
        while len(said) < 2:
            said += os.read(reader, 2)
        assert sorted(said) == sorted(b".h")
        with lock(tmp_path / "lock") as second:
            assert not second
        os.kill(parent, signal.SIGKILL)  # its child lives on
        os.waitpid(parent, 0)
        with lock(tmp_path / "lock") as again:
            assert again
    finally:
        os.killpg(parent, signal.SIGKILL)


def test_the_end_of_the_block_ends_the_lock_before_a_new_child_has_run(tmp_path: Path) -> None:
    with lock(tmp_path / "lock") as held:
        assert held
        file = os.dup(next(iter(_descriptors(tmp_path / "lock"))))  # as the child has it until it runs
    with lock(tmp_path / "lock") as again:
        assert again
    os.close(file)


def _descriptors(path: Path) -> Iterator[int]:
    for each in Path("/proc/self/fd").iterdir():
        if each.exists() and each.resolve() == path.resolve():
            yield int(each.name)
