"""Ctrl-C and SIGTERM, handled between two steps."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType


class Interrupted(Exception):
    """Training was stopped by a signal and saved a checkpoint."""

    def __init__(self, signal_number: int, step: int, folder: Path) -> None:
        super().__init__(f"stopped at step {step}, saved. Go on with: tracer resume {folder}")
        self.signal_number, self.step, self.folder = signal_number, step, folder


class Interrupt:
    """A context in which a signal only sets `received`; a second Ctrl-C raises KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.received == number:  # one Ctrl-C may arrive twice: torchrun forwards it as SIGTERM
            raise KeyboardInterrupt
        self.received = number
