"""What to do next: the commands that the outcome of some runs calls for."""

from __future__ import annotations

from dataclasses import replace

from tracer.core.command_line import command_line
from tracer.evaluation.verdict import MIN_IMAGES, Change
from tracer.report.comparison import Group, Setting
from tracer.report.headline import comparable, setting_verdict
from tracer.report.reproduce import Command, training
from tracer.report.run_data import RunData, number

MOST = 3  # commands
NOTICEABLE = 0.02  # loss of accuracy


def next_steps(group: Group) -> list[Command]:
    """At most three commands, the most urgent first."""
    if not group.finished:
        return [Command("Go on, if it was stopped", _line("resume", run)) for run in group.runs[:MOST]]
    return _after(best_setting(group.finished))[:MOST]


def best_setting(settings: list[Setting]) -> Setting:
    """The setting with the highest accuracy on the task as rounded, of equal ones the one that retains most.

    They are ranked by what all of them were measured on.
    """
    keys = comparable([setting for setting in settings if setting.changes])

    def rank(setting: Setting) -> tuple[float, float]:
        outcome = setting_verdict(setting, keys)
        if outcome is None:
            return -1.0, 0.0
        changes = [change.difference.value for change in outcome.retained.values()]
        return round(outcome.task.after.value, 3), sum(changes) / max(1, len(changes))

    return max(settings, key=rank)


def _after(setting: Setting) -> list[Command]:
    """What a finished setting calls for: bad news first, and no export of a model that got worse."""
    outcome, run = setting_verdict(setting), setting.finished[0]
    measure = Command("Measure it on more test images", _line("eval", run, "--data", "TEST-FOLDER"))
    merge = Command(
        "Get back what was lost: mix with the pretrained weights", _line("merge", run, "--wise", "0:1:0.1")
    )
    steps = []
    if outcome is None:
        return [measure]
    worse = outcome.task.difference.value < 0
    if outcome.bad or worse:
        steps += [merge, *_gentler(run)]
    elif outcome.no_gain or outcome.task.n < MIN_IMAGES:
        steps.append(measure)
    if any(map(_lost, outcome.retained.values())):
        keep = Command(merge.gives, f"{merge.line} --keep 0.98")
        steps = [keep, *(step for step in steps if step is not merge)]
    if not outcome.retained:
        line = _line("eval", run, "--data", "retain=OTHER-FOLDER")
        steps.append(Command("See what it forgot, on data of another kind", line))
    if not (outcome.bad or worse or outcome.no_gain):
        steps.append(Command("Use it", _line("export", run)))
    if not setting.tested and measure not in steps:
        steps.append(measure)
    return steps


def _lost(change: Change) -> bool:
    """Whether something was lost beyond noise, or noticeably where the number of images is not known."""
    return (
        change.difference.value < 0
        if change.clear
        else not change.n and change.difference.value < -NOTICEABLE
    )


def _gentler(run: RunData) -> list[Command]:
    """The same training with a tenth of its learning rate."""
    rate = number(run.experiment.get("lr"))
    if not rate:
        return []
    settings = run.experiment | {"lr": float(f"{rate / 10:.3g}")}
    again = replace(run, description=run.description | {"experiment": settings})
    return [Command("Train again, with a tenth of the learning rate", training(again))]


def _line(command: str, run: RunData, *words: str) -> str:
    return command_line(command, run.folder, *words)
