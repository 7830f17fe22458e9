"""Finetune a model: `tracer train [METHOD] --data …`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape

from tracer.cli.console import Display, console, counting, errors, percent, show_table, stop_at_once
from tracer.core.errors import Echo, UserError, at_least, denied, unknown
from tracer.methods.base import methods, options, summary
from tracer.parallel import Lost, World, launched
from tracer.runs.experiment import Experiment, Settings
from tracer.runs.plan import Plan, plan
from tracer.runs.record import Onlooker
from tracer.runs.run import Run, home
from tracer.runs.sinks import Name, check_installed, mirrored
from tracer.training.interrupt import Interrupted
from tracer.training.loop import NonFinite, Report, train

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
    log: tuple[Name, ...] = ()
    """Show the curves elsewhere too: tensorboard, wandb. The run's own log.jsonl is written in any case."""
    shard: bool = False
    """Under torchrun: cut weights, optimiser and teacher among the processes (FSDP2) instead of copying them."""
    dry_run: bool = False
    """Show the resolved experiment, steps, trainable parameters and memory, and stop."""

    def __post_init__(self) -> None:
        at_least(0, workers=self.workers)
        at_least(1, save_every=self.save_every)


def main(arguments: list[str]) -> int:
    experiment, machine = understood(arguments)
    check_installed(machine.log)
    if machine.dry_run:
        return _dry_run(looked_at(experiment))
    # An absent device is refused before anything is written.
    with launched(machine.device, experiment.precision, shard=machine.shard, lost=stop_at_once) as world:
        made = world.together(lambda: shareable(looked_at(experiment, world), world))
        world.lead(lambda: Run.create(made, machine.out))
        run = world.together(lambda: Run.open(home(made, machine.out)))
        return carry_out(made, run, world, machine)


def understood(arguments: list[str]) -> tuple[Experiment, Machine]:
    """What the words after `tracer train` ask for."""
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
    return Experiment(method=name, options=asked, **settings), flags.machine


def looked_at(experiment: Experiment, world: World | None = None) -> Plan:
    """The plan, and a bar while all images are looked at."""
    with counting("looking at the images", shown=world is None or world.first) as count:
        return plan(experiment, progress=count)


def shareable(made: Plan, world: World) -> Plan:
    """A plan whose batches divide among the processes."""
    if rest := made.batch % world.size:
        near = f"--batch {made.batch - rest} or {made.batch - rest + world.size}"
        raise UserError(f"batch {made.batch} does not divide among {world.size} processes: use {near}")
    return made


def carry_out(made: Plan, run: Run, world: World, machine: Machine) -> int:
    """Train, show progress, and say what came out and what can be done with it."""
    go_on = f"Go on with: tracer resume {run.folder}"
    if not world.first:
        run.recorder = Onlooker(run.recorder.path)
    try:
        with ExitStack() as stack, world.guard():
            world.lead(lambda: stack.enter_context(run.locked()))
            stack.enter_context(mirrored(run, machine.log if world.first else (), _warn))
            workers = _workers(machine, made, world)
            _watch(made, train(made, run, world, save_every=machine.save_every, workers=workers), world)
    except Interrupted as stop:
        if world.first:
            errors.print(f"stopped at step {stop.step}, saved. {go_on}", markup=False)
        return 128 + stop.signal_number
    except NonFinite as error:  # every process has computed the same loss
        raise error if world.first else Echo from None
    except Lost as error:
        raise Lost(f"{error}. {go_on}") from None
    except OSError as error:
        raise UserError(f"{denied(error)}. When that is put right: {go_on[0].lower()}{go_on[1:]}") from error
    if world.first:
        _show(run, made)
    return 0


def _warn(message: str) -> None:
    errors.print(f"[bold yellow]warning:[/] {escape(message)}", highlight=False)


def _watch(made: Plan, reports: Iterator[Report], world: World) -> None:
    if not world.first:
        deque(reports, maxlen=0)
        return
    with Display(made.experiment.method, made.steps) as display:
        for report in reports:
            display.show(report)


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


def _workers(machine: Machine, made: Plan, world: World) -> int:
    from tracer.data.loader import decoders

    return decoders(made.train.images, world.neighbours) if machine.workers is None else machine.workers


def _dry_run(made: Plan) -> int:
    from tracer.training.memory.estimate import estimate

    rows = [(name, str(value)) for name, value in made.experiment.to_json().items()]
    rows += [("training images", str(len(made.train))), ("held-out images", str(len(made.held_out)))]
    rows += [(name, value) for name, value in estimate(made).lines()]
    show_table("What would run", ("setting", "value"), rows)
    return 0


def _show(run: Run, made: Plan) -> None:
    from tracer.evaluation.summary import compared

    result = run.result
    before, after = result["before"], result["after"]
    rows = [("held-out accuracy", percent(before["accuracy"]), percent(after["accuracy"]))]
    rows += [
        (f"retained: {name}", percent(before["retain"][name]), percent(score))
        for name, score in after["retain"].items()
    ]
    told = {"ece": "calibration error (ECE)", "temperature": "temperature that would calibrate it"}
    rows += [
        (title, f"{before[name]:.3f}", f"{after[name]:.3f}") for name, title in told.items() if name in after
    ]
    show_table(made.method.title, ("", "before", "after"), rows)
    kept = result["retention"]
    among = compared(len(made.held_out))
    told = f"On {percent(kept['agreement'])} of {among} it still picks the pretrained model's ImageNet name"
    console.print(f"{told} (KL {kept['kl']:.3f}).", highlight=False)
    for warning in result["warnings"]:
        errors.print(f"[bold red]retention:[/] {escape(warning)}", highlight=False)
    console.print(
        f"The run is in {run.folder}. Next: tracer export {run.folder}", highlight=False, markup=False
    )
