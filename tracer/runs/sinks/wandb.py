"""Logging to Weights & Biases; WANDB_PROJECT, WANDB_ENTITY and WANDB_MODE=offline work as usual."""

from __future__ import annotations

import os
import secrets
from importlib import import_module
from pathlib import Path
from typing import Any

from tracer.runs.sinks.sink import Line, scalars
from tracer.storage.atomic import write_text


class WeightsAndBiases:
    """One W&B run per run folder. A resumed run keeps its id and does not log a step twice."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder, self.description = folder, description
        self.id_file = folder / "wandb" / "id.txt"  # per folder: an experiment may be run in several

    def begin(self, last_step: int) -> None:
        # import_module, because type checkers confuse this file with the package of the same name.
        wandb: Any = import_module("wandb")
        resumed = self.id_file.exists()
        if not resumed:
            write_text(self.id_file, f"{self.description['id']}-{secrets.token_hex(3)}")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "tracer"),
            id=self.id_file.read_text(),
            name=self.folder.name,
            dir=self.folder,
            config=self.description["experiment"],
            resume="allow",
            settings=wandb.Settings(console="off", login_timeout=30),
        )
        # Online, the server gives the next step; offline it is 0 and the log decides.
        self.first_step = self.run.step or (last_step + 1 if resumed else 0)

    def write(self, line: Line) -> None:
        if line["step"] >= self.first_step:
            self.run.log(scalars(line), step=line["step"])

    def end(self) -> None:
        self.run.finish()
