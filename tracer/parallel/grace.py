"""A moment to say what happened: `torchrun` ends the survivors of a lost process as soon as it has noticed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 5.0  # seconds


@contextmanager
def grace() -> Iterator[None]:
    """SIGTERM ends this process a little later; behind an error, until its very end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _end_soon)
    yield
    signal.signal(signal.SIGTERM, previous)  # only if all went well


def _end_soon(number: int, frame: FrameType | None) -> None:
    del frame
    timer = threading.Timer(GRACE, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()
