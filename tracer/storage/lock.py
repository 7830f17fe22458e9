"""A lock on a file that ends with the process that holds it, and that no child process inherits."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_open_files: set[IO[str]] = set()


@contextmanager
def lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Yields whether the lock is held by this block; without `wait` it is not if somebody else holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened without truncating it or following a link: a stranger's folder must not change a file elsewhere.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with open(descriptor, "r+") as file:  # noqa: PTH123
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        _open_files.add(file)
        try:
            yield True
        finally:
            _open_files.discard(file)
            if not file.closed:  # as it is in a child
                # Closing alone would leave the lock to a child that was forked a moment ago and has not run yet.
                fcntl.flock(file, fcntl.LOCK_UN)


def _close_in_child() -> None:
    """A forked child, such as a loader worker, would hold the lock for as long as it outlives its parent."""
    for file in _open_files:
        file.close()  # closing one of two descriptors does not release the lock of the other
    _open_files.clear()


os.register_at_fork(after_in_child=_close_in_child)
