"""Search for the best model within a time: `tracer fit --data DATA`."""

from __future__ import annotations

import signal
from pathlib import Path
from tempfile import TemporaryDirectory

from tracer.api.run import Machine
from tracer.api.streams import training
from tracer.api.terminal import errors, say, show_table
from tracer.cli.flags import command
from tracer.fitting.candidates import preview
from tracer.fitting.fit import DEFAULT_BUDGET, Request, fit, prepare, requested
from tracer.fitting.result import PAGE
from tracer.runs.experiment import TrialSettings
from tracer.training.interrupt import Interrupted


@command("tracer fit")
def main(
    settings: TrialSettings,
    budget: str = DEFAULT_BUDGET,
    keep: float | None = None,
    out: Path | None = None,
    dry_run: bool = False,
    device: str = "auto",
    workers: int | None = None,
) -> int:
    """Try methods, learning rates, strengths and mixtures with the pretrained weights
    within a budget, and keep the most accurate; of those within noise of it, the
    one that forgets least. It may forget: --keep sets a bound. A part of the data
    that nothing was chosen by tests the choice once.

    Examples:
      tracer fit --data photos/                       half an hour
      tracer fit --data photos/ --budget 2h           or --budget 20-runs
      tracer fit --data photos/ --keep 0.97           keep 97 % of what it could do
      tracer fit --data photos/ --retain other/       "what it could do" is this
      tracer fit --data photos/ --dry-run             what would be tried

    Stopped, the same command goes on. Started twice with the same --out, two
    processes share the work.

    Args:
        budget: a time such as 30m or 2h, or a number of full finetunings such as 20-runs.
        keep: share of what the model could do that it must keep, such as 0.97.
        retain: data that say what the model could do; by default the naming of embedded emoji.
        out: folder of the trials and of the result; by default runs/fit-ID.
        dry_run: look at the data, score the pretrained model, show the plan, and stop.
        device: auto, cpu, cuda or mps.
        workers: processes that decode images.
    """
    if dry_run:
        with TemporaryDirectory() as temporary:
            request = requested(settings.model, budget, keep, Path(temporary), vars(settings))
            return _dry_run(request, Machine(device=device, workers=workers))
    try:
        with training():
            result = fit(
                budget=budget, keep=keep, out=out, device=device, workers=workers, tell=say, **vars(settings)
            )
    except (Interrupted, KeyboardInterrupt) as stop:  # in a trial, or between two
        say("stopped; the same command goes on", to=errors)
        return 128 + getattr(stop, "signal_number", signal.SIGINT)
    if not result.pretrained:  # else the sentence says why
        say(f"Why: {result.reason}.")
    if result.commands:
        say("Made again without the search by:")
        for line in result.commands:  # each alone, so that only what is to be pasted is wider than a terminal
            say(line)
    say(f"Every trial: {result.folder / PAGE}")
    say(result.sentence)
    if result.advice:
        say(result.advice)
    else:
        say(f"In Python it names a photograph with: {result.call}")
    say(f"Next: {result.next}")
    return 0


def _dry_run(request: Request, machine: Machine) -> int:
    """Show the plan and the candidates in their order; nothing is left behind."""
    search = prepare(request, machine, say)
    candidates = preview(search.parts.test.labelled, search.schedule.trials[0] - 1)
    rows = [(str(number), name, rate) for number, (name, rate) in enumerate(candidates, 1)]
    show_table("Candidates, in this order", ("", "method", "learning rate"), rows)
    return 0
