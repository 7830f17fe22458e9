"""Training with a progress bar and a printed result, for `tracer train` and other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from tracer.api.run import Machine, Observer, run
from tracer.evaluation.summary import describe_compared
from tracer.methods.base import method
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run
from tracer.terminal import Display, console, counting, errors, percent, show_table, stop_at_once
from tracer.training.interrupt import Interrupted


def carry_out(experiment: Experiment, out: Path | None, machine: Machine, *, fresh: bool = False) -> int:
    """Carry out an experiment with a progress bar, then print its result. Returns the exit code."""
    with Display(experiment.method) as display:
        observer = Observer(
            scan=lambda world: counting("reading the images", world.first),
            report=display.show,
            warn=lambda message: errors.print(f"[bold yellow]warning:[/] {escape(message)}", highlight=False),
            lost=stop_at_once,
        )
        try:
            finished = run(experiment, out, machine, observer, fresh=fresh)
        except Interrupted as stop:
            display.close()
            errors.print(str(stop), markup=False)
            return 128 + stop.signal_number
    if display.used:  # only the first process receives reports
        show_result(finished)
    return 0


def show_result(finished: Run) -> None:
    """Print task accuracy, retention and calibration before and after training, and a next command."""
    result = finished.result
    before, after = result["before"], result["after"]
    rows = [("held-out accuracy", percent(before["accuracy"]), percent(after["accuracy"]))]
    rows += [
        (f"retained: {name}", percent(before["retain"][name]), percent(score))
        for name, score in after["retain"].items()
    ]
    titles = {"ece": "calibration error (ECE)", "temperature": "temperature that would calibrate it"}
    rows += [
        (title, f"{before[name]:.3f}", f"{after[name]:.3f}")
        for name, title in titles.items()
        if name in after
    ]
    show_table(method(finished.experiment.method).title, ("", "before", "after"), rows)
    retention = result["retention"]
    images = describe_compared(finished.description["data"]["held_out"])
    console.print(
        f"On {percent(retention['agreement'])} of {images} it still picks the pretrained model's ImageNet name "
        f"(KL {retention['kl']:.3f}).",
        highlight=False,
    )
    for warning in result["warnings"]:
        errors.print(f"[bold red]retention:[/] {escape(warning)}", highlight=False)
    console.print(
        f"The run is in {finished.folder}. Next: tracer export {finished.folder}",
        highlight=False,
        markup=False,
    )


def run_with_progress(
    experiment: Experiment, out: Path, title: str, *, evaluate_every: int | None = None, **machine: Any
) -> Run:
    """The finished run of an experiment on the CPU, with a progress bar under `title` while it trains."""
    with Display(title) as display:
        observer = Observer(report=display.show)
        cpu = Machine(device="cpu", workers=0, **machine)
        return run(experiment, out, cpu, observer, evaluate_every=evaluate_every)
