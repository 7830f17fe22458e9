"""Resume a stopped run, bit for bit: `tracer resume RUN`."""

from __future__ import annotations

from pathlib import Path

from tracer.api.run import Machine
from tracer.api.terminal import say
from tracer.cli.flags import command
from tracer.cli.training import carry_out, changed_since, warn
from tracer.parallel import launch
from tracer.runs.run import Run


@command("tracer resume")
def main(run: Path, /, machine: Machine) -> int:
    """Resume a run from its newest checkpoint.

    Args:
        run: the run's folder.
    """
    opened = Run.open(run)
    opened.require_named_sources()
    if opened.finished:
        if launch().rank > 0:
            return 0
        say(f"{opened.folder} is finished: there is nothing to resume")
        if change := changed_since(opened):
            warn(change)
        return 0
    return carry_out(opened.experiment, opened.folder, machine)
