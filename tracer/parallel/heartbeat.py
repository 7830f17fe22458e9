"""Lost processes: a heartbeat that detects those that hang or vanish, and time for the others to report why."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import torch.distributed as dist

from tracer.parallel.world import Lost

BEAT = 5.0  # seconds
# Beats until a process counts as lost; counted, not timed, so that suspending a machine is no alarm.
MISSED = 6
SAVING = 60.0  # seconds to save a checkpoint if the launcher is gone
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GRACE = 5.0  # seconds to report a lost process, after which `torchrun` has sent SIGTERM to the others


class Heartbeat:
    """Each process counts up a key in the store and checks the next one's; the first alarm is raised in all."""

    def __init__(
        self, store: dist.Store, rank: int, size: int, lost: Callable[[Lost], None], beat: float = BEAT
    ) -> None:
        self.store, self.rank, self.next, self.lost, self.beat = store, rank, (rank + 1) % size, lost, beat
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        last, missed = -1, 0
        while not self._stopped.wait(self.beat):
            try:
                self.store.add(f"heart/{self.rank}", 1)
                beats = self.store.add(f"heart/{self.next}", 0)
                last, missed = beats, missed + 1 if beats == last else 0
                if missed == MISSED:
                    self.store.set("silent", str(self.next))
                lost_rank = self.store.get("silent").decode() if self.store.check(["silent"]) else None
            except RuntimeError as error:  # the store is in the launcher or in the first process
                if not self._stopped.is_set():
                    os.kill(os.getpid(), signal.SIGTERM)  # if only the launcher is gone, all can still save
                    if not self._stopped.wait(SAVING):
                        self.lost(Lost(f"the launcher is gone ({' '.join(str(error).split())[:160]})"))
                return
            if lost_rank is not None:
                seconds = int(MISSED * self.beat)
                self.lost(Lost(f"process {lost_rank} has not been heard of for {seconds} seconds"))
                return


@contextmanager
def grace_period() -> Iterator[None]:
    """Delay the effect of SIGTERM by `GRACE` seconds; if the block raises, until the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _exit_later)
    yield
    signal.signal(signal.SIGTERM, previous)  # not after an error


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A context that a signal ends with the process, at once: for waiting with nothing to save.

    Functions in Python, which otherwise handle signals, are called when compiled code returns. One that connects to
    a process that was killed returns after half an hour, and `torchrun` would wait its 30 seconds to start anew.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {each: signal.getsignal(each) for each in ENDING}
    handlers = {each: handler for each, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    try:
        for each in handlers:
            signal.signal(each, signal.SIG_DFL)
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


def _exit_later(number: int, frame: FrameType | None) -> None:
    del frame
    timer = threading.Timer(GRACE, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()
