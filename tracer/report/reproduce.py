"""The commands that reproduce a run and its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from tracer.core.flags import flag
from tracer.data.sources import EMBEDDED
from tracer.methods.base import methods, options
from tracer.report.run_data import RunData
from tracer.runs.experiment import Settings


class Command(NamedTuple):
    """A command line and a description of its output."""

    gives: str
    line: str


def commands(run: RunData) -> list[Command]:
    """Commands for the whole run and for its single numbers."""
    line = f"{training(run)} --out {shlex.quote(f'{run.folder}-again')}"
    result = [Command("the whole run, with all its numbers", line)]
    folder, held_out = str(run.folder), run.experiment.get("held_out")
    if not run.finished:
        line = shlex.join(["tracer", "resume", folder])
        result.append(Command("the rest of the run, if it was stopped", line))
    if held_out is not None:
        result += _measures(run, "task accuracy", [str(held_out)])
    for data in run.experiment.get("retain") or ():
        result += _measures(run, f"accuracy on {data}", [f"retain={data}"])
    result += _suite(run)
    # A part held out of the training data cannot be named in `tracer eval`; an analysis uses the same images.
    ends = (
        ""
        if held_out is not None
        else ", the ends of which are the task accuracy before (α = 0) and after (α = 1)"
    )
    result.append(Command(f"layers, drift and path{ends}", shlex.join(["tracer", "analyse", folder])))
    line = shlex.join(["tracer", "report", folder, "--figures", "figures/"])
    result.append(Command("every figure as SVG and PDF, its data as CSV", line))
    return result


def _measures(run: RunData, what: str, data: Sequence[str]) -> list[Command]:
    templates = run.experiment.get("templates")
    own = templates is not None and what == "task accuracy"
    return _evaluation(run, what, ["--data", *data, *(["--templates", str(templates)] if own else [])])


def _evaluation(run: RunData, what: str, arguments: Sequence[str]) -> list[Command]:
    return [Command(f"{what}, before and after", shlex.join(["tracer", "eval", str(run.folder), *arguments]))]


def _suite(run: RunData) -> list[Command]:
    """The commands that evaluated the test sets, one or several."""
    evaluations: dict[tuple[str, ...], dict[tuple[str, str], None]] = {}
    for row in run.scored["after"]:
        evaluations.setdefault(_arguments(row), {})[row["role"], row["shift"]] = None
    result: list[Command] = []
    for arguments, sets in evaluations.items():
        what = "every test set" if len(evaluations) == 1 else _listed(sets)
        result += _evaluation(run, what, arguments) if arguments else _guessed(run, what, sets)
    return result


def _arguments(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of `tracer eval RUN` that gave this row; none in rows of older versions."""
    words = row.get("asked")
    return tuple(str(word) for word in words) if isinstance(words, list) else ()


def _listed(sets: Iterable[tuple[str, str]], most: int = 3) -> str:
    names = [name for _, name in sets]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _guessed(run: RunData, what: str, sets: Iterable[tuple[str, str]]) -> list[Command]:
    """Commands for rows without arguments: own data by their names, else a suite to be filled in."""
    if all(_own(name) for _, name in sets):
        return _measures(run, what, [f"{role}={name}" for role, name in sets])
    line = f"tracer eval {shlex.quote(str(run.folder))} --suite SUITE --root FOLDER"
    return [Command(f"{what}, before and after", line)]


def _own(name: str) -> bool:
    return name in EMBEDDED or Path(name).exists()


def training(run: RunData) -> str:
    """The `tracer train` command with every setting that is not a default."""
    words = ["tracer", "train", str(run.experiment.get("method", "tracer"))]
    for name, value, default in _settings(run):
        if value != default and value is not None:
            words += flag(name, value)
    return shlex.join(words)


def _settings(run: RunData) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(Settings):
        default = None if field.default is MISSING else field.default
        value = run.experiment.get(field.name, default)
        yield field.name, tuple(value) if isinstance(value, list) else value, default
    name = run.experiment.get("method")
    defaults = {option.name: option.default for option in options(name)} if name in methods() else {}
    for option, value in run.options.items():
        yield option, value, defaults.get(option)
