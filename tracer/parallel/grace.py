"""A grace period after SIGTERM: `torchrun` ends the other processes when one is lost, and they should report why."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 5.0  # seconds


@contextmanager
def grace_period() -> Iterator[None]:
    """Delay the effect of SIGTERM by `GRACE` seconds; if the block raises, until the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _exit_later)
    yield
    signal.signal(signal.SIGTERM, previous)  # not after an error


def _exit_later(number: int, frame: FrameType | None) -> None:
    del frame
    timer = threading.Timer(GRACE, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()
