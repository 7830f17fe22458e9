"""The commands that give a run's numbers again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from tracer.experiment import Settings
from tracer.method import methods, options
from tracer.report.account import Account


class Command(NamedTuple):
    """What a command gives, and the command."""

    gives: str
    line: str


def commands(run: Account) -> list[Command]:
    """The whole run, then each of its numbers by itself where the data can be named."""
    found = [Command("the whole run", training(run))]
    folder, experiment = shlex.quote(str(run.folder)), run.experiment
    if not run.finished:
        found.append(Command("the rest of it, if it was stopped", f"tracer resume {folder}"))
    sets = [("task accuracy", experiment.get("held_out"))]
    sets += [(f"accuracy on {data}", data) for data in experiment.get("retain") or ()]
    for what, data in sets:
        if data is not None:
            line = f"tracer eval {folder} --data {shlex.quote(str(data))}"
            templates = experiment.get("templates")
            if templates is not None and what == "task accuracy":
                line += f" --templates {shlex.quote(str(templates))}"
            found += [
                Command(f"{what}, after", line),
                Command(f"{what}, before", f"{line} --weights pretrained"),
            ]
    found.append(Command("layers, drift and path", f"tracer analyse {folder}"))
    line = f"tracer report {folder} --figures figures/"
    found.append(Command("every figure as SVG and PDF, its data as CSV", line))
    return found


def training(run: Account) -> str:
    """`tracer train` with every setting that is not a default."""
    words = ["tracer", "train", str(run.experiment.get("method", "tracer"))]
    for name, value, default in _settings(run):
        if value != default and value is not None:
            words += _flag(name, value)
    return shlex.join(words)


def _settings(run: Account) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(Settings):
        default = None if field.default is MISSING else field.default
        value = run.experiment.get(field.name, default)
        yield field.name, tuple(value) if isinstance(value, list) else value, default
    name = run.experiment.get("method")
    defaults = {option.name: option.default for option in options(name)} if name in methods() else {}
    for option, value in run.options.items():
        yield option, value, defaults.get(option)


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    if isinstance(value, tuple):
        return [flag, *(str(part) for part in value)]
    return [flag, str(value)]
