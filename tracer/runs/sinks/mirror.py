"""A recorder that others listen to, each in a thread of its own: what they do cannot hold up or end a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from tracer.runs.record import Recorder, read
from tracer.storage.checksum import verify_checksum
from tracer.runs.sinks.sink import Sink


class Mirror(Recorder):
    """Writes the log as ever, and tells sinks what it wrote."""

    def __init__(
        self,
        path: Path,
        sinks: Mapping[str, Sink],
        complain: Callable[[str], None],
        patience: float = 60.0,  # seconds for what is left when the run has ended
    ) -> None:
        super().__init__(path)
        self.patience = patience
        self.tellers = [Teller(name, sink, complain) for name, sink in sinks.items()]
        self.begun = False

    def log(self, step: int, kind: str, **values: Any) -> None:
        super().log(step, kind, **values)
        self._tell({"step": step, "kind": kind, **values})

    def rewind(self, step: int) -> int:
        """Forget what came after `step`; sinks take up the run from what the log still holds."""
        told = max((line["step"] for line in read(self.path)), default=-1) if self.path.exists() else -1
        unreadable = super().rewind(step)
        lines = list(read(self.path)) if self.path.exists() else []
        for teller in self.tellers:
            teller.ask(partial(teller.sink.begin, lines, told))
        self.begun = True
        return unreadable

    def close(self, result: Path) -> None:
        """Tell the result, if there is one, and wait a while for those that are slow."""
        if result.exists():
            last = max((line["step"] for line in read(self.path)), default=0)
            found = verify_checksum(result.read_text(encoding="utf-8"))
            self._tell({"step": last, "kind": "result", "before": found["before"], "after": found["after"]})
        for teller in self.tellers:
            if self.begun:
                teller.ask(teller.sink.end)
            teller.close(self.patience)

    def _tell(self, line: dict[str, Any]) -> None:
        for teller in self.tellers:
            teller.ask(partial(teller.sink.tell, line))


class Teller:
    """Speaks to one sink from a thread; the first thing that goes wrong is said once, and ends it."""

    def __init__(self, name: str, sink: Sink, complain: Callable[[str], None]) -> None:
        self.name, self.sink, self.complain = name, sink, complain
        self.asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.thread = Thread(target=self._work, name=f"sink {name}", daemon=True)
        self.thread.start()

    def ask(self, action: Callable[[], None]) -> None:
        """Have it done, some time soon."""
        self.asked.put(action)

    def close(self, patience: float) -> None:
        """Let it finish; one that is stuck is left behind."""
        self.asked.put(None)
        self.thread.join(patience)
        if self.thread.is_alive():
            self.complain(
                f"{self.name} has not taken everything in {patience:g} s: it is left. The log has it all"
            )

    def _work(self) -> None:
        try:
            while (action := self.asked.get()) is not None:
                action()
        except Exception as error:  # noqa: BLE001  (whatever a stranger's code does, the run goes on)
            told = f"{type(error).__name__}: {error}".strip()
            self.complain(f"{self.name} gave up, the run goes on without it: {told}")
