"""A run on Weights & Biases; WANDB_PROJECT, WANDB_ENTITY and WANDB_MODE=offline do what they always do."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tracer.storage.atomic import write_text
from tracer.runs.sinks.sink import Line, scalars


class WeightsAndBiases:
    """A resumed run goes on under the same id; what was told before is not told again."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder, self.description = folder, description
        self.name = folder / "wandb" / "id.txt"  # of this folder, not of the experiment: it may be run twice

    def begin(self, lines: Sequence[Line], told: int) -> None:
        wandb: Any = import_module(
            "wandb"
        )  # by name: this file has the same one, which confuses type checkers
        known = self.name.exists()
        if not known:
            write_text(self.name, f"{self.description['id']}-{secrets.token_hex(3)}")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "tracer"),
            id=self.name.read_text(),
            name=self.folder.name,
            dir=self.folder,
            config=self.description["experiment"],
            resume="allow",
            settings=wandb.Settings(console="off", login_timeout=30),
        )
        # The server knows what it has; offline, the log does.
        self.first = self.run.step or (told + 1 if known else 0)
        for line in lines:
            self.tell(line)

    def tell(self, line: Line) -> None:
        if line["step"] >= self.first:
            self.run.log(scalars(line), step=line["step"])

    def end(self) -> None:
        self.run.finish()
