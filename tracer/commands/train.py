"""Finetune a model: `tracer train [METHOD] --data …`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape

from tracer.console import Display, console, errors, percent, show_table
from tracer.errors import unknown
from tracer.experiment import Experiment, Settings
from tracer.interrupt import Interrupted
from tracer.method import methods, options, summary
from tracer.parallel import World
from tracer.plan import Plan, plan
from tracer.run import Run
from tracer.train import train

EXAMPLES = """

Examples:
  tracer train --data photos/                          one folder a class; everything else by default
  tracer train --data pairs.csv --epochs 5             a table with image paths and captions
  tracer train ft --data photos/ --retain other/       another method; watch what it does to other data
  tracer train --data photos/ --dry-run                what would happen, and whether it fits in memory
"""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how it runs; none of it changes the outcome."""

    out: Path | None = None
    """Run directory; by default runs/ID, the ID a hash of experiment and data."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    workers: int | None = None
    """Processes that decode images; by default none for data in memory, else up to 8."""
    save_every: int | None = None
    """Steps between checkpoints; by default a twentieth of training."""
    dry_run: bool = False
    """Show the resolved experiment, steps, trainable parameters and memory, and stop."""


def main(arguments: list[str]) -> int:
    named = bool(arguments) and not arguments[0].startswith("-")
    name = arguments[0] if named else "tracer"
    if name not in methods():
        raise unknown("method", name, methods())
    flags = tyro.cli(
        _flags(name),
        args=arguments[1:] if named else arguments,
        prog=f"tracer train {name}" if named else "tracer train [METHOD]",
        description=f"{summary(name)}{EXAMPLES}\nMethods: {', '.join(methods())}",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff),
    )
    settings = {f.name: getattr(flags.settings, f.name) for f in fields(Settings)}
    asked = {f.name: getattr(flags.method, f.name) for f in fields(flags.method)}
    experiment = Experiment(method=name, options=asked, **settings)
    made = plan(experiment)
    if flags.machine.dry_run:
        return _dry_run(made)
    world = World(
        flags.machine.device, experiment.precision
    )  # an absent device is refused before anything is written
    return carry_out(made, Run.create(made, flags.machine.out), world, flags.machine)


def carry_out(made: Plan, run: Run, world: World, machine: Machine) -> int:
    """Train, show progress, and say what came out and what can be done with it."""
    try:
        with run.locked(), Display(made.experiment.method, made.steps) as display:
            for report in train(
                made, run, world, save_every=machine.save_every, workers=_workers(machine, made)
            ):
                display.show(report)
    except Interrupted as stop:
        errors.print(
            f"stopped at step {stop.step}, saved. Go on with: tracer resume {run.folder}", markup=False
        )
        return 128 + stop.signal_number
    _show(run, made)
    return 0


def _flags(name: str) -> type[Any]:
    """The settings, the method's own options and the machine as one set of flags."""
    own = [
        (option.name, Annotated[option.type, tyro.conf.arg(help=option.help)], field(default=option.default))
        for option in options(name)
    ]
    method = make_dataclass(f"Options of {name}", own, frozen=True, kw_only=True)
    parts = [
        ("settings", Settings),
        ("method", method, field(default=method())),
        ("machine", Machine, field(default=Machine())),
    ]
    return make_dataclass("Train", parts, frozen=True)


def _workers(machine: Machine, made: Plan) -> int:
    import os

    from tracer.data.examples import Pixels

    if machine.workers is not None:
        return machine.workers
    return 0 if isinstance(made.train.images, Pixels) else min(8, os.cpu_count() or 1)


def _dry_run(made: Plan) -> int:
    from tracer.memory import estimate

    rows = [(name, str(value)) for name, value in made.experiment.to_json().items()]
    rows += [("training images", str(len(made.train))), ("held-out images", str(len(made.held_out)))]
    rows += [(name, value) for name, value in estimate(made).lines()]
    show_table("What would run", ("setting", "value"), rows)
    return 0


def _show(run: Run, made: Plan) -> None:
    import json

    result = json.loads((run.folder / "result.json").read_text())
    before, after = result["before"], result["after"]
    rows = [("held-out accuracy", percent(before["accuracy"]), percent(after["accuracy"]))]
    rows += [
        (f"retained: {name}", percent(before["retain"][name]), percent(score))
        for name, score in after["retain"].items()
    ]
    rows += (
        [("calibration error (ECE)", f"{before['ece']:.3f}", f"{after['ece']:.3f}")] if "ece" in after else []
    )
    show_table(made.method.title, ("", "before", "after"), rows)
    kept = result["retention"]
    told = f"On {percent(kept['agreement'])} of held-out images it still picks the pretrained model's ImageNet name"
    console.print(f"{told} (KL {kept['kl']:.3f}).", highlight=False)
    for warning in result["warnings"]:
        errors.print(f"[bold red]retention:[/] {escape(warning)}", highlight=False)
    console.print(
        f"The run is in {run.folder}. Next: tracer export {run.folder}", highlight=False, markup=False
    )
