"""A recorder that forwards its lines to sinks, each in its own thread, so that no sink can delay or stop the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from tracer.runs.files import read_json
from tracer.runs.record import Recorder, read
from tracer.runs.sinks.tools import Line, Sink

REASON = 400  # characters of an error that a warning shows


class ForwardingRecorder(Recorder):
    """Writes the log and forwards every line to the sinks. `warn` receives a message for each sink that fails."""

    def __init__(
        self,
        path: Path,
        sinks: Mapping[str, Sink],
        warn: Callable[[str], object],
        timeout: float = 60.0,  # seconds that `close` waits for the sinks
    ) -> None:
        super().__init__(path)
        self.warn, self.timeout = warn, timeout
        self.threads = [SinkThread(name, sink, warn) for name, sink in sinks.items()]
        self.started = False

    def log(self, step: int, kind: str, **values: Any) -> None:
        super().log(step, kind, **values)
        self._forward({"step": step, "kind": kind, **values})

    def rewind(self, step: int) -> int:
        """Drop all lines after `step` and start the sinks with the lines that remain."""
        last_step = max((line["step"] for line in read(self.path)), default=-1) if self.path.exists() else -1
        unreadable = super().rewind(step)
        for thread in self.threads:
            thread.calls.put(lambda sink: sink.begin(last_step))
        for line in read(self.path) if self.path.exists() else ():
            self._forward(line)
        self.started = True
        return unreadable

    def close(self, result_file: Path) -> None:
        """Forward the result, if the file exists, and wait up to `timeout` seconds for the sinks."""
        if result_file.exists():
            last_step = max((line["step"] for line in read(self.path)), default=0)
            result = read_json(result_file)
            scores = {"before": result["before"], "after": result["after"]}
            self._forward({"step": last_step, "kind": "result", **scores})
        for thread in self.threads:
            if self.started:
                thread.calls.put(lambda sink: sink.end())
            thread.calls.put(None)
        deadline = time.monotonic() + self.timeout
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self.warn(
                    f"{thread.tool} did not finish within {self.timeout:g} s and may be incomplete; the log is complete"
                )

    def _forward(self, line: Line) -> None:
        for thread in self.threads:
            thread.calls.put(lambda sink: sink.write(line))


def hanging() -> bool:
    """Whether a sink that was given up is still busy: at its end Python may wait for the same thing for ever."""
    return any(isinstance(thread, SinkThread) for thread in threading.enumerate())


class SinkThread(Thread):
    """Makes the calls that are put into its queue on one sink; after the first exception it warns and ends."""

    def __init__(self, tool: str, sink: Sink, warn: Callable[[str], object]) -> None:
        super().__init__(name=tool, daemon=True)
        self.tool, self.sink, self.warn = tool, sink, warn
        self.calls: SimpleQueue[Callable[[Sink], None] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        try:
            while (call := self.calls.get()) is not None:
                call(self.sink)
        except BaseException as error:  # noqa: BLE001  (third-party code may raise anything; the run must go on)
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:REASON].removesuffix(":")
            self.warn(f"{self.tool} failed, the run goes on without it: {reason}")
