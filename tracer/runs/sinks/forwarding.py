"""A recorder that forwards its lines to sinks, each in its own thread, so that no sink can delay or stop the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from tracer.runs.files import read_json
from tracer.runs.record import Recorder, read
from tracer.runs.sinks.tools import Line, Sink


class ForwardingRecorder(Recorder):
    """Writes the log and forwards every line to the sinks. `warn` receives a message for each sink that fails."""

    def __init__(
        self,
        path: Path,
        sinks: Mapping[str, Sink],
        warn: Callable[[str], object],
        timeout: float = 60.0,  # seconds that `close` waits for each sink
    ) -> None:
        super().__init__(path)
        self.timeout = timeout
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
        """Forward the result, if the file exists, and wait up to `timeout` seconds for each sink."""
        if result_file.exists():
            last_step = max((line["step"] for line in read(self.path)), default=0)
            result = read_json(result_file)
            scores = {"before": result["before"], "after": result["after"]}
            self._forward({"step": last_step, "kind": "result", **scores})
        for thread in self.threads:
            if self.started:
                thread.calls.put(lambda sink: sink.end())
            thread.close(self.timeout)

    def _forward(self, line: Line) -> None:
        for thread in self.threads:
            thread.calls.put(lambda sink: sink.write(line))


class SinkThread(Thread):
    """Makes the calls that are put into its queue on one sink; after the first exception it warns and ends."""

    def __init__(self, name: str, sink: Sink, warn: Callable[[str], object]) -> None:
        super().__init__(name=name, daemon=True)
        self.sink, self.warn = sink, warn
        self.calls: SimpleQueue[Callable[[Sink], None] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        try:
            while (call := self.calls.get()) is not None:
                call(self.sink)
        except Exception as error:  # noqa: BLE001  (third-party code may raise anything; the run must go on)
            reason = f"{type(error).__name__}: {error}".strip()
            self.warn(f"{self.name} failed, the run goes on without it: {reason}")

    def close(self, timeout: float) -> None:
        """Wait until all calls are done, at most `timeout` seconds; then warn and abandon the thread."""
        self.calls.put(None)
        self.join(timeout)
        if self.is_alive():
            self.warn(
                f"{self.name} did not finish within {timeout:g} s and may be incomplete; the log is complete"
            )
