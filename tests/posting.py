"""Send something the way a loader sends it to its workers, and look at what arrives."""

from __future__ import annotations

from multiprocessing import Pipe
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def posted(value: T) -> T:
    """The value from the other end of a pipe; it is read while it is written, as a pipe holds little."""
    near, far = Pipe()
    sender = Thread(target=near.send, args=(value,))
    sender.start()
    arrived = far.recv()
    sender.join()
    return arrived
