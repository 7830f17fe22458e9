"""Finetune a model: `tracer train [METHOD] --data …`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from tracer.api.run import Machine
from tracer.cli.training import carry_out
from tracer.core.errors import unknown
from tracer.methods.base import methods, options, summary
from tracer.runs.experiment import Experiment, Settings
from tracer.runs.plan import plan
from tracer.runs.sinks import check_installed
from tracer.terminal import counting, show_table
from tracer.training.memory.estimate import estimate

EXAMPLES = """

Examples:
  tracer train --data photos/                          one folder per class, all defaults
  tracer train --data pairs.csv --epochs 5             a table with image paths and captions
  tracer train ft --data photos/ --retain other/       another method, and its effect on other data
  tracer train --data photos/ --dry-run                settings and memory, without training
"""


@dataclass(frozen=True, kw_only=True)
class Output(Machine):
    """Where and how it runs; none of it changes the result."""

    out: Path | None = None
    """Folder of the run; by default runs/ID, where ID is a hash of experiment and data."""
    dry_run: bool = False
    """Show all settings, trainable parameters and the memory estimate, and stop."""


def main(arguments: list[str]) -> int:
    experiment, output = parse(arguments)
    check_installed(output.log)
    if output.dry_run:
        return _dry_run(experiment)
    return carry_out(experiment, output.out, output, fresh=True)


def parse(arguments: list[str]) -> tuple[Experiment, Output]:
    """The experiment and the output options of the arguments of `tracer train`."""
    has_method = bool(arguments) and not arguments[0].startswith("-")
    name = arguments[0] if has_method else "tracer"
    if name not in methods():
        raise unknown("method", name, methods())
    flags = tyro.cli(
        _flags(name),
        args=arguments[1:] if has_method else arguments,
        prog=f"tracer train {name}" if has_method else "tracer train [METHOD]",
        description=f"{summary(name)}{EXAMPLES}\nMethods: {', '.join(methods())}",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff),
    )
    settings = {f.name: getattr(flags.settings, f.name) for f in fields(Settings)}
    method_options = {f.name: getattr(flags.method, f.name) for f in fields(flags.method)}
    return Experiment(method=name, options=method_options, **settings), flags.output


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
        ("output", Output, field(default=Output())),
    ]
    return make_dataclass("Train", parts, frozen=True)


def _dry_run(experiment: Experiment) -> int:
    with counting("reading the images") as progress:
        resolved = plan(experiment, progress=progress)
    rows = [(name, str(value)) for name, value in resolved.experiment.to_json().items()]
    rows += [("training images", str(len(resolved.train))), ("held-out images", str(len(resolved.held_out)))]
    rows += [(name, value) for name, value in estimate(resolved).lines()]
    show_table("What would run", ("setting", "value"), rows)
    return 0
