"""Go on with a run that was stopped, bit for bit: `tracer resume RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.cli.commands.train import Machine, carry_out, looked_at, shareable
from tracer.cli.console import console, stop_at_once
from tracer.core.errors import UserError
from tracer.parallel import World, launched
from tracer.runs.plan import Plan
from tracer.runs.run import Run, identity
from tracer.runs.sinks import Name, check_installed


def main(arguments: list[str]) -> int:
    def resume(
        run: Annotated[Path, tyro.conf.Positional],
        device: str = "auto",
        workers: int | None = None,
        save_every: int | None = None,
        log: tuple[Name, ...] = (),
        shard: bool = False,
    ) -> int:
        """Go on from the newest checkpoint of a run.

        Args:
            run: the run's directory.
            device: auto, cpu, cuda or mps.
            workers: processes that decode images.
            save_every: steps between checkpoints.
            log: show the curves elsewhere too: tensorboard, wandb; steps told before are not told twice.
            shard: under torchrun, cut the weights among the processes; any number of them may go on.
        """
        check_installed(log)
        machine = Machine(device=device, workers=workers, save_every=save_every, log=log, shard=shard)
        return carry_on(Run.open(run), machine)

    return tyro.cli(resume, args=arguments, prog="tracer resume", config=(tyro.conf.FlagCreatePairsOff,))


def carry_on(run: Run, machine: Machine) -> int:
    """Rebuild the plan from the run's own description, make sure that the data are the same, and train."""
    if run.finished:
        console.print(f"{run.folder} is finished: there is nothing to resume", highlight=False)
        return 0
    with launched(machine.device, run.experiment.precision, shard=machine.shard, lost=stop_at_once) as world:
        made = world.together(lambda: shareable(_same(run, world), world))
        return carry_out(made, run, world, machine)


def _same(run: Run, world: World) -> Plan:
    made = looked_at(run.experiment, world)
    if identity(made) != run.description["id"]:
        raise UserError(f"the data of {run.folder} have changed since it began: {made.experiment.data}")
    run.require(made)
    return made
