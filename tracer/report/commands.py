"""Commands that a report shows: those that reproduce a run and its numbers, and those that its outcome calls for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from tracer.core.command_line import command_line, flag
from tracer.evaluation.test_sets import evaluations
from tracer.evaluation.verdict import MIN_IMAGES, Change
from tracer.report.comparison import Group, Setting
from tracer.report.headline import best_setting, setting_verdict
from tracer.report.run_data import RunData, number
from tracer.runs.experiment import Settings, default_batchnorm

MOST = 3  # next steps
NOTICEABLE = 0.02  # loss of accuracy


class Command(NamedTuple):
    """A command line and a description of its output."""

    gives: str
    line: str

    @classmethod
    def on(cls, run: RunData, gives: str, command: str, *words: str) -> Command:
        """`tracer COMMAND RUN WORDS`."""
        return cls(gives, command_line(command, run.folder, *words))


def training(run: RunData, **changes: Any) -> str:
    """The `tracer train` command with every setting that is not a default; `changes` replace some."""
    experiment = run.experiment | changes
    words = ["train", experiment.get("method", "tracer")]
    values = [(each.name, experiment.get(each.name, each.default), each.default) for each in fields(Settings)]
    values += [(name, value, run.default_options.get(name)) for name, value in run.options.items()]
    for name, value, default in values:
        value = tuple(value) if isinstance(value, list) else value
        if name == "batchnorm" and value == default_batchnorm(experiment.get("pretrained", "auto")):
            continue
        if value not in (default, None, MISSING):
            words += flag(name, value)
    return command_line(*words)


def commands(run: RunData) -> list[Command]:
    """Commands for the whole run and for its single numbers."""
    again = f"{training(run)} --out {shlex.quote(f'{run.folder}-again')}"
    result = [Command("the whole run, with all its numbers", again)]
    held_out, templates = run.experiment.get("held_out"), run.experiment.get("templates")
    if not run.finished:
        result.append(Command.on(run, "the rest of the run, if it was stopped", "resume"))
    if held_out is not None:
        prompts = () if templates is None else ("--templates", templates)
        result.append(
            Command.on(run, "task accuracy, before and after", "eval", "--data", held_out, *prompts)
        )
    for data in run.experiment.get("retain") or ():
        gives = f"accuracy on {data}, before and after"
        result.append(Command.on(run, gives, "eval", "--data", f"retain={data}"))
    result += _test_sets(run)
    # A part held out of the training data cannot be named in `tracer eval`; an analysis uses the same images.
    ends = ", the ends of which are the task accuracy before (α = 0) and after (α = 1)"
    result.append(Command.on(run, f"layers, drift and path{ends if held_out is None else ''}", "analyse"))
    gives = "every figure as SVG and PDF, its data as CSV"
    return [*result, Command.on(run, gives, "report", "--figures", "figures/")]


def _test_sets(run: RunData) -> Iterator[Command]:
    """The commands that evaluated the test sets, one or several."""
    asked = evaluations(each for each in run.answers["after"] if each.role != "task")
    for flags, names in asked.items():
        what = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        if len(asked) == 1:
            what = "every test set"
        yield Command.on(run, f"{what}, before and after", "eval", *flags)


def next_steps(group: Group) -> list[Command]:
    """At most three commands, the most urgent first."""
    if not group.finished:
        return [Command.on(run, "Go on, if it was stopped", "resume") for run in group.runs[:MOST]]
    return _after(best_setting(group.finished))[:MOST]


def _after(setting: Setting) -> list[Command]:
    """What a finished setting calls for: bad news first, and no export of a model that got worse."""
    outcome, run = setting_verdict(setting), setting.finished[0]
    measure = Command.on(run, "Measure it on more test images", "eval", "--data", "TEST-FOLDER")
    lost = "Get back what was lost: mix with the pretrained weights"
    merge = Command.on(run, lost, "merge", "--wise", "0:1:0.1")
    if outcome is None:
        return [measure]
    steps = []
    worse = outcome.bad or outcome.task.difference.value < 0
    if worse:
        steps.append(merge)
        if (run.result or {}).get("statistics_moved"):
            kept = training(run, batchnorm="keep")
            steps.append(Command("Train again, with the pretrained BatchNorm statistics", kept))
        elif rate := number(run.experiment.get("lr")):
            gentler = training(run, lr=float(f"{rate / 10:.3g}"))
            steps.append(Command("Train again, with a tenth of the learning rate", gentler))
    elif outcome.no_gain or outcome.task.n < MIN_IMAGES:
        steps.append(measure)
    if any(map(_lost, outcome.retained.values())):
        keep = Command(lost, f"{merge.line} --keep 0.98")
        steps = [keep, *(step for step in steps if step is not merge)]
    if not outcome.retained:
        gives = "See what it forgot, on data of another kind"
        steps.append(Command.on(run, gives, "eval", "--data", "retain=OTHER-FOLDER"))
    if not worse and not outcome.no_gain:
        steps.append(Command.on(run, "Use it", "export"))
    if not setting.tested and measure not in steps:
        steps.append(measure)
    return steps


def _lost(change: Change) -> bool:
    """Whether something was lost beyond noise, or noticeably where the number of images is not known."""
    if change.clear:
        return change.difference.value < 0
    return not change.n and change.difference.value < -NOTICEABLE
