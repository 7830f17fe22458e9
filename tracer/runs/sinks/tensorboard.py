"""Event files for TensorBoard, in the run's own folder: `tensorboard --logdir runs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracer.runs.sinks.sink import Line, scalars


class TensorBoard:
    """One event file a run. A resumed run writes its file anew from the log, so that no step stands there twice."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder / "tensorboard"
        self.description = description

    def begin(self, lines: Sequence[Line], told: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        del told
        for old in self.folder.glob("events.out.tfevents.*"):
            old.unlink()
        # A TensorBoard that has the old file open is told to forget it.
        self.writer = SummaryWriter(self.folder, purge_step=0, flush_secs=30)
        settings = {**self.description["experiment"], **self.description["experiment"]["options"]}
        shown = [f"| {name} | `{value}` |" for name, value in settings.items() if name != "options"]
        self.writer.add_text("experiment", "\n".join(["| setting | value |", "|---|---|", *shown]), 0)
        for line in lines:
            self.tell(line)

    def tell(self, line: Line) -> None:
        for name, value in scalars(line).items():
            self.writer.add_scalar(name, value, line["step"])

    def end(self) -> None:
        self.writer.close()
