"""Signals that stop a run: it saves a checkpoint after the current step, then ends."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tracer.core.command_line import command_line
from tracer.data.loader import SIGNALS

# Seconds after which a second Ctrl-C comes from the user and is not a copy that a launcher has forwarded.
PATIENCE = 1.0


class Interrupted(Exception):
    """Training was stopped by a signal, and can go on from `step`."""

    def __init__(self, signal_number: int, step: int, folder: Path) -> None:
        state = f"stopped at step {step}, saved" if step else "stopped while starting"
        super().__init__(f"{state}. Go on with: {command_line('resume', folder)}")
        self.signal_number, self.step, self.folder = signal_number, step, folder


class Interrupt:
    """A context in which a signal only sets `received`, except in a block of `at_once`.

    A second Ctrl-C raises KeyboardInterrupt. Signals that are ignored when it begins, as under nohup, stay ignored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.step = folder, 0  # the last step that was saved
        self.received: int | None = None
        self._received_at = 0.0
        self._at_once = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A block that a signal ends with `Interrupted`, for work that may take long and changes nothing."""
        self._at_once = True
        try:
            if self.received is not None:
                raise Interrupted(self.received, self.step, self.folder)
            yield
        finally:
            self._at_once = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.received is None:
            self.received, self._received_at = number, time.monotonic()
            if self._at_once:
                raise Interrupted(number, self.step, self.folder)
        elif number == signal.SIGINT and time.monotonic() > self._received_at + PATIENCE:
            raise KeyboardInterrupt
