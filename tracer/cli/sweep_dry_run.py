"""What `tracer sweep RECIPE --dry-run` shows: every run with its settings, steps, warm-up and memory, and the data."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from tracer.api.terminal import errors, say, show_table
from tracer.cli.dry_run import GIB, different_settings
from tracer.core.errors import UserError
from tracer.data.split import Division
from tracer.evaluation.suites.imagenet import COMPLETE, TRAINING_IMAGES, check
from tracer.methods.base import method
from tracer.models.registry import locate, pretrained_tag
from tracer.report.comparison import show
from tracer.runs.experiment import Experiment
from tracer.runs.plan import warmup_steps
from tracer.sweep.plans import Plans
from tracer.sweep.product import START, Sweep
from tracer.training.estimate import estimate

COLUMNS = ("number", "run", "settings; from 1 on, what differs from 0", "steps", "warm-up", "memory", "state")


def dry_run(sweep: Sweep, folder: Path) -> int:
    """Print the runs, and which data and weights are here. Returns 1 if a run would be refused."""
    runs = sweep.by_folder(folder)
    first = next(iter(runs.values()))
    plans = Plans(sweep)
    planned: dict[str, tuple[str, str, str]] = {}  # runs that differ in their seed are planned once
    rows, problems = [], {}
    for number, (run, experiment) in enumerate(runs.items()):
        state = "done" if (run / "result.json").exists() else "started" if run.exists() else ""
        alike = plans.alike(experiment)
        with errors.status(f"planning run {number}"):
            try:
                figures = planned.get(alike.id) or _figures(alike, plans)
                planned[alike.id] = figures
            except UserError as error:
                problems.setdefault(str(error), number)
                state, figures = "refused", _settled(experiment)
        different = different_settings(experiment, first if number else None)
        settings = ", ".join(f"{name} {show(value)}" for name, value in different.items())
        rows.append((str(number), run.name, settings, *figures, state))
    show_table(f"{len(runs)} runs in {folder}", COLUMNS, rows)
    say("memory is that of one process in fp32; bf16 halves the activations")
    refused = [f"✗ run {number} and those like it: {error}" for error, number in problems.items()]
    for line in [*_found(sweep, plans.divisions), *refused]:
        say(line)
    return int(bool(problems))


def _figures(experiment: Experiment, plans: Plans) -> tuple[str, str, str]:
    """Steps, warm-up and memory of a run."""
    settled = plans(experiment)
    if not settled.steps:
        return "0", "0", ""
    return f"{settled.steps:,}", f"{settled.warmup:,}", f"{estimate(settled).total / GIB:.1f} GiB"


def _settled(experiment: Experiment) -> tuple[str, str, str]:
    """Steps and warm-up of a run that would be refused, as far as its settings say them without the data."""
    with suppress(UserError):
        trains = any(stage.share for stage in method(experiment.method, **experiment.options).stages)
        if experiment.steps is not None and trains:
            return f"{experiment.steps:,}", f"{warmup_steps(experiment.warmup, experiment.steps):,}", ""
    return "", "", ""


def _found(sweep: Sweep, divisions: dict[tuple[Any, ...], Division]) -> list[str]:
    """One line for the training data, for the weights of each model and for each test set: whether they are here."""
    lines = []
    for (data, *_), division in divisions.items():
        count = len(division.train) + (len(division.held_out) if division.share is not None else 0)
        complete = sweep.published is None or count == TRAINING_IMAGES
        expected = "" if complete else f"; ImageNet has {TRAINING_IMAGES:,} training images"
        lines.append(f"{COMPLETE if complete else '✗'} {data}: {division}{expected}")
    for model, pretrained in dict.fromkeys((each.model, each.pretrained) for each in sweep.experiments):
        tag = None if model == START else pretrained_tag(model, pretrained)
        download = None if tag is None else locate(model, tag).download
        if download is not None:
            state = f"{COMPLETE} weights {tag} of {model}: here" if download.cached else ""
            lines.append(state or f"✗ weights {tag} of {model}: to be downloaded")
    if sweep.tests is not None and sweep.tests.suite == "imagenet":
        lines += check(sweep.tests.root)
    elif sweep.published is not None:
        lines.append("✗ test sets: --root is not given, so that runs are not scored")
    return lines
