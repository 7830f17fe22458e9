"""Ctrl-C and SIGTERM as a question asked between two steps, instead of a blow in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupted(Exception):
    """Training stopped because it was asked to, after saving its state."""

    def __init__(self, signal_number: int, step: int) -> None:
        super().__init__(f"stopped at step {step}")
        self.signal_number, self.step = signal_number, step


class Interrupt:
    """While it is open, the signals only set `asked`; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.asked: int | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.asked == number:  # torchrun passes on as SIGTERM what the terminal has sent as SIGINT
            raise KeyboardInterrupt
        self.asked = number
