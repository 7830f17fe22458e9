"""Training with a progress bar and a printed result, for `tracer train` and other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from tracer.api.load import call
from tracer.api.run import Machine, Observer, run
from tracer.api.terminal import Display, console, counting, errors, say, show_table, stop_at_once
from tracer.core.command_line import command_line
from tracer.core.errors import UserError
from tracer.evaluation.measured import describe_compared
from tracer.evaluation.verdict import Change, Verdict, names_kept, plus_minus, value_with_interval, verdict
from tracer.methods.base import method
from tracer.parallel import launch
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.interrupt import Interrupted

CALIBRATION = {"ece": "calibration error (ECE)", "temperature": "temperature that would calibrate it"}


def carry_out(experiment: Experiment, out: Path | None, machine: Machine, *, fresh: bool = False) -> int:
    """Carry out an experiment with a progress bar, then print its result. Returns the exit code."""
    with Display(experiment.method) as display:
        observer = Observer(
            scan=lambda world: counting("reading the images", world.first),
            note=say,
            report=display.show,
            warn=warn,
            lost=stop_at_once,
        )
        try:
            finished = run(experiment, out, machine, observer, fresh=fresh)
        except Interrupted as stop:
            display.bar.stop()
            say(str(stop), to=errors)
            return 128 + stop.signal_number
    if launch().rank == 0:
        show_result(finished)
    return 0


def warn(message: str) -> None:
    """Print a warning."""
    errors.print(f"[bold yellow]warning:[/] {escape(message)}", highlight=False)


def changed_since(finished: Run) -> str:
    """What the data and the model of a finished run no longer are; empty if they are what they were."""
    try:
        with counting("reading the images") as progress:
            settled = plan(finished.experiment, progress=progress)
        finished.require_start()
    except UserError as error:
        return f"it cannot be run again as it was: {error}"
    changed = finished.changes(settled)
    return f"the result is not of what is here now: since then, {changed} have changed" if changed else ""


def show_result(finished: Run) -> None:
    """Print accuracy, retention and calibration before and after with intervals, then the verdict in one sentence."""
    result, folder = finished.result, finished.folder
    before, after, changes = result["before"], result["after"], result["changes"]
    task = "held-out accuracy" if finished.description["classes"] else "held-out caption R@1"
    kept = {f"retained: {name}": value for name, value in changes["retain"].items()}
    rows = []
    for title, value in {task: changes["task"], **kept}.items():
        change = Change.from_json(value)
        rows.append((title, plus_minus(change.before), plus_minus(change.after), str(change.n)))
    known = result.get("intervals", {})
    for name, title in CALIBRATION.items():
        if name in after and name in before:
            first = value_with_interval(before[name], known.get("before", {}).get(name))
            last = value_with_interval(after[name], known.get("after", {}).get(name))
            rows.append((title, first, last, str(changes["task"]["n"])))
    show_table(method(finished.experiment.method).title, ("", "before", "after", "images"), rows)
    if (agreement := names_kept(result)) is not None:
        images = describe_compared(finished.description["data"]["held_out"])
        say(f"On {plus_minus(agreement)} of {images} it still picks the pretrained model's ImageNet name.")
    for warning in result["warnings"]:
        errors.print(f"[bold red]retention:[/] {escape(warning)}", highlight=False)
    say(f"The run is in {folder}. In Python it names a photograph with:")
    say(f"  {call(folder, finished.task().classes)}")
    outcome = verdict(result)
    trained = finished.description.get("steps") != 0  # of zeroshot, no longer training could change anything
    measure = command_line("eval", folder, "--data", "TEST-IMAGES")
    show_verdict(
        outcome,
        next_step(outcome, folder, statistics_moved=result.get("statistics_moved", False))
        if trained
        else measure,
    )


def show_verdict(outcome: Verdict | None, next_command: str | None, images: str = "held-out images") -> None:
    """Print what was gained and lost in one sentence, in colour where it is bad, and the next command."""
    if outcome is None:
        return
    colour = "bold red" if outcome.bad else "yellow" if outcome.no_gain else "bold green"
    sentence = f"[{colour}]{escape(outcome.sentence(images))}[/]"
    console.print(sentence, highlight=False, soft_wrap=not console.is_terminal)
    if next_command:
        say(f"Next: {next_command}")


def next_step(outcome: Verdict | None, folder: Path, *, statistics_moved: bool = False) -> str:
    """The command that a finished run calls for: no export of a model that got worse."""
    if outcome is None:
        return command_line("export", folder)
    if outcome.bad or outcome.task.difference.value < 0:
        remedy = "--batchnorm keep" if statistics_moved else "a lower --lr"
        return f"{command_line('merge', folder, '--wise', '0:1:0.1')}, or train again with {remedy}"
    if outcome.no_gain:
        return f"{command_line('eval', folder, '--data', 'MORE-TEST-IMAGES')}, or train again for longer"
    return command_line("export", folder)


def run_with_progress(
    experiment: Experiment, out: Path, title: str, *, evaluate_every: int | None = None, **machine: Any
) -> Run:
    """The finished run of an experiment on the CPU, with a progress bar under `title` while it trains."""
    with Display(title) as display:
        observer = Observer(report=display.show)
        cpu = Machine(device="cpu", workers=0, **machine)
        return run(experiment, out, cpu, observer, evaluate_every=evaluate_every)
