"""Resume a stopped run, bit for bit: `tracer resume RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.api.run import Machine
from tracer.api.terminal import say
from tracer.cli.flags import cli
from tracer.cli.training import carry_out, changed_since, warn
from tracer.runs.run import Run
from tracer.runs.sinks import Name


def main(arguments: list[str]) -> int:
    def resume(
        run: Annotated[Path, tyro.conf.Positional],
        device: str = "auto",
        workers: int | None = None,
        save_every: int | None = None,
        log: tuple[Name, ...] = (),
        shard: bool = False,
    ) -> int:
        """Resume a run from its newest checkpoint.

        Args:
            run: the run's folder.
            device: auto, cpu, cuda or mps.
            workers: processes that decode images.
            save_every: steps between checkpoints.
            log: also log to tensorboard, wandb or mlflow; no step is logged twice.
            shard: under torchrun, shard the weights over the processes (FSDP2); their number may change.
        """
        machine = Machine(device=device, workers=workers, save_every=save_every, log=log, shard=shard)
        opened = Run.open(run)
        if opened.finished:
            say(f"{opened.folder} is finished: there is nothing to resume")
            if change := changed_since(opened):
                warn(change)
            return 0
        return carry_out(opened.experiment, opened.folder, machine)

    return cli(resume, arguments, "tracer resume")
