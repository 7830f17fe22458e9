"""Is everybody still there? A heartbeat beside the training, for a peer that falls silent instead of failing."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch.distributed as dist

from tracer.parallel.world import Lost

BEAT = 5.0  # seconds
SILENCE = 6  # beats without a sign of life; counted, not timed, so that a machine put to sleep is no alarm


class Watch:
    """Each process beats in the store and listens to the next one's heart; the first alarm is everybody's."""

    def __init__(
        self, store: dist.Store, rank: int, size: int, lost: Callable[[Lost], None], beat: float = BEAT
    ) -> None:
        self.store, self.rank, self.next, self.lost, self.beat = store, rank, (rank + 1) % size, lost, beat
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The work is done."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        heard, silent = -1, 0
        while not self._over.wait(self.beat):
            try:
                self.store.add(f"heart/{self.rank}", 1)
                beats = self.store.add(f"heart/{self.next}", 0)
                heard, silent = beats, silent + 1 if beats == heard else 0
                if silent == SILENCE:
                    self.store.set("silent", str(self.next))
                gone = self.store.get("silent").decode() if self.store.check(["silent"]) else None
            except RuntimeError as error:  # the store lives in the launcher or in the first process
                if not self._over.is_set():
                    self.lost(Lost(f"the first process is gone ({' '.join(str(error).split())[:160]})"))
                return
            if gone is not None:
                seconds = int(SILENCE * self.beat)
                self.lost(Lost(f"process {gone} has not been heard of for {seconds} seconds"))
                return
