"""TensorBoard event files in the run's folder: `tensorboard --logdir runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracer.core.markdown import markdown_table
from tracer.runs.sinks.sink import Line, flat_settings, scalars


class TensorBoard:
    """One event file per run. A resumed run rewrites the file from the log, so that no step appears twice."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder / "tensorboard"
        self.description = description

    def begin(self, last_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        del last_step
        for old in self.folder.glob("events.out.tfevents.*"):
            old.unlink()
        # purge_step makes a running TensorBoard discard what it read from the old file.
        self.writer = SummaryWriter(self.folder, purge_step=0, flush_secs=30)
        rows = [(name, f"`{value}`") for name, value in flat_settings(self.description).items()]
        self.writer.add_text("experiment", markdown_table(("setting", "value"), rows, align_right=False), 0)

    def write(self, line: Line) -> None:
        for name, value in scalars(line).items():
            self.writer.add_scalar(name, value, line["step"])

    def end(self) -> None:
        self.writer.close()
