"""The commands that give a run's numbers again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from tracer.data.sources import EMBEDDED
from tracer.experiment import Settings
from tracer.method import methods, options
from tracer.report.account import Account


class Command(NamedTuple):
    """What a command gives, and the command."""

    gives: str
    line: str


def commands(run: Account) -> list[Command]:
    """The whole run, then each of its numbers by itself where there is a command for it."""
    again = f"{training(run)} --out {shlex.quote(f'{run.folder}-again')}"
    found = [Command("the whole run, with all its numbers", again)]
    folder, held_out = str(run.folder), run.experiment.get("held_out")
    if not run.finished:
        line = shlex.join(["tracer", "resume", folder])
        found.append(Command("the rest of it, if it was stopped", line))
    if held_out is not None:
        found += _measures(run, "task accuracy", [str(held_out)])
    for data in run.experiment.get("retain") or ():
        found += _measures(run, f"accuracy on {data}", [f"retain={data}"])
    found += _suite(run)
    # What was held out of the training data has no name of its own; an analysis takes the very same images.
    ends = (
        ""
        if held_out is not None
        else ", the ends of which are the task accuracy before (α = 0) and after (α = 1)"
    )
    found.append(Command(f"layers, drift and path{ends}", shlex.join(["tracer", "analyse", folder])))
    line = shlex.join(["tracer", "report", folder, "--figures", "figures/"])
    found.append(Command("every figure as SVG and PDF, its data as CSV", line))
    return found


def _measures(run: Account, what: str, data: Sequence[str]) -> list[Command]:
    line = ["tracer", "eval", str(run.folder), "--data", *data]
    templates = run.experiment.get("templates")
    if templates is not None and what == "task accuracy":
        line += ["--templates", str(templates)]
    pretrained = [*line, "--weights", "pretrained"]
    return [
        Command(f"{what}, after", shlex.join(line)),
        Command(f"{what}, before", shlex.join(pretrained)),
    ]


def _suite(run: Account) -> list[Command]:
    """The table over all test sets: own data by their names; what a suite has in its folder by that suite."""
    sets = dict.fromkeys((row["role"], row["shift"]) for row in run.scored["after"])
    if not sets:
        return []
    if all(_own(name) for _, name in sets):
        return _measures(run, "every test set", [f"{role}={name}" for role, name in sets])
    line = f"tracer eval {shlex.quote(str(run.folder))} --suite SUITE --root FOLDER"
    return [
        Command("every test set", line),
        Command("every test set, before", f"{line} --weights pretrained"),
    ]


def _own(name: str) -> bool:
    return name in EMBEDDED or Path(name).exists()


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
