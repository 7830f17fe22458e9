"""The commands that give a run's numbers again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from tracer.data.sources import EMBEDDED
from tracer.methods.base import methods, options
from tracer.report.account import Account
from tracer.runs.experiment import Settings


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
    templates = run.experiment.get("templates")
    told = templates is not None and what == "task accuracy"
    return _evaluation(run, what, ["--data", *data, *(["--templates", str(templates)] if told else [])])


def _evaluation(run: Account, what: str, asked: Sequence[str]) -> list[Command]:
    line = ["tracer", "eval", str(run.folder), *asked]
    pretrained = [*line, "--weights", "pretrained"]
    return [
        Command(f"{what}, after", shlex.join(line)),
        Command(f"{what}, before", shlex.join(pretrained)),
    ]


def _suite(run: Account) -> list[Command]:
    """The table over all test sets, which came from one command or several."""
    found: dict[tuple[str, ...], dict[tuple[str, str], None]] = {}
    for row in run.scored["after"]:
        found.setdefault(_asked(row), {})[row["role"], row["shift"]] = None
    made: list[Command] = []
    for asked, sets in found.items():
        what = "every test set" if len(found) == 1 else _listed(sets)
        made += _evaluation(run, what, asked) if asked else _unasked(run, what, sets)
    return made


def _asked(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The words after `tracer eval RUN` that gave this row; none in rows of older versions."""
    words = row.get("asked")
    return tuple(str(word) for word in words) if isinstance(words, list) else ()


def _listed(sets: Iterable[tuple[str, str]], most: int = 3) -> str:
    names = [name for _, name in sets]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _unasked(run: Account, what: str, sets: Iterable[tuple[str, str]]) -> list[Command]:
    """Own data by their names; what a suite has in its folder by that suite."""
    if all(_own(name) for _, name in sets):
        return _measures(run, what, [f"{role}={name}" for role, name in sets])
    line = f"tracer eval {shlex.quote(str(run.folder))} --suite SUITE --root FOLDER"
    return [
        Command(what, line),
        Command(f"{what}, before", f"{line} --weights pretrained"),
    ]


def _own(name: str) -> bool:
    return name in EMBEDDED or Path(name).exists()


def training(run: Account) -> str:
    """`tracer train` with every setting that is not a default."""
    words = ["tracer", "train", str(run.experiment.get("method", "tracer"))]
    for name, value, default in _settings(run):
        if value != default and value is not None:
            words += flag(name, value)
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


def flag(name: str, value: Any) -> list[str]:
    """A setting in the words of the command line."""
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word if value else f"--no-{word[2:]}"]
    if isinstance(value, tuple):
        return [word, *(str(part) for part in value)]
    return [word, str(value)]
