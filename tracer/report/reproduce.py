"""The commands that reproduce a run and its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from tracer.core.command_line import command_line, flag
from tracer.data.sources import EMBEDDED
from tracer.report.run_data import RunData
from tracer.report.scored import eval_flags
from tracer.runs.experiment import Settings


class Command(NamedTuple):
    """A command line and a description of its output."""

    gives: str
    line: str


def commands(run: RunData) -> list[Command]:
    """Commands for the whole run and for its single numbers."""
    line = f"{training(run)} --out {shlex.quote(f'{run.folder}-again')}"
    result = [Command("the whole run, with all its numbers", line)]
    held_out, templates = run.experiment.get("held_out"), run.experiment.get("templates")
    if not run.finished:
        line = command_line("resume", run.folder)
        result.append(Command("the rest of the run, if it was stopped", line))
    if held_out is not None:
        prompts = () if templates is None else ("--templates", str(templates))
        result.append(_evaluation(run, "task accuracy", "--data", str(held_out), *prompts))
    for data in run.experiment.get("retain") or ():
        result.append(_evaluation(run, f"accuracy on {data}", "--data", f"retain={data}"))
    result += _test_sets(run)
    # A part held out of the training data cannot be named in `tracer eval`; an analysis uses the same images.
    ends = (
        ""
        if held_out is not None
        else ", the ends of which are the task accuracy before (α = 0) and after (α = 1)"
    )
    result.append(Command(f"layers, drift and path{ends}", command_line("analyse", run.folder)))
    line = command_line("report", run.folder, "--figures", "figures/")
    result.append(Command("every figure as SVG and PDF, its data as CSV", line))
    return result


def _evaluation(run: RunData, what: str, *flags: str) -> Command:
    return Command(f"{what}, before and after", command_line("eval", run.folder, *flags))


def _test_sets(run: RunData) -> Iterator[Command]:
    """The commands that evaluated the test sets, one or several."""
    evaluations: dict[tuple[str, ...], dict[tuple[str, str], None]] = {}
    for row in run.scored["after"]:
        evaluations.setdefault(eval_flags(row), {})[row["role"], row["shift"]] = None
    for flags, sets in evaluations.items():
        what = "every test set" if len(evaluations) == 1 else _listed(sets)
        yield _evaluation(run, what, *(flags or _guessed_flags(sets)))


def _listed(sets: Iterable[tuple[str, str]], most: int = 3) -> str:
    names = [name for _, name in sets]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _guessed_flags(sets: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The flags of rows that do not have them: own data by their names, else a suite to be filled in."""
    if all(name in EMBEDDED or Path(name).exists() for _, name in sets):
        return ("--data", *(f"{role}={name}" for role, name in sets))
    return ("--suite", "SUITE", "--root", "FOLDER")


def training(run: RunData) -> str:
    """The `tracer train` command with every setting that is not a default."""
    words = ["train", str(run.experiment.get("method", "tracer"))]
    for name, value, default in _settings(run):
        if value != default and value is not None:
            words += flag(name, value)
    return command_line(*words)


def _settings(run: RunData) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(Settings):
        default = None if field.default is MISSING else field.default
        value = run.experiment.get(field.name, default)
        yield field.name, tuple(value) if isinstance(value, list) else value, default
    for option, value in run.options.items():
        yield option, value, run.default_options.get(option)
