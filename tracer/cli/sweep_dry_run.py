"""What `tracer sweep RECIPE --dry-run` shows: every run with its settings, steps, warm-up and memory, and the data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracer.api.run import divisible
from tracer.api.terminal import errors, say, show_table
from tracer.core.errors import UserError
from tracer.data.split import Division, divide
from tracer.evaluation.suites.imagenet import COMPLETE, TRAINING_IMAGES, check
from tracer.methods.base import method, options
from tracer.models.registry import locate, pretrained_tag
from tracer.parallel import World
from tracer.report.comparison import show
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan, warmup_steps
from tracer.sweep.product import START, Sweep
from tracer.training.memory.estimate import estimate

COLUMNS = ("number", "run", "settings; from 1 on, what differs from 0", "steps", "warm-up", "memory", "state")
GIB = 2**30


def dry_run(sweep: Sweep, folder: Path) -> int:
    """Print the runs, and which data and weights are here. Returns 1 if a run would be refused."""
    runs = sweep.by_folder(folder)
    planned = Planned(sweep)
    first: Experiment | None = None
    rows, problems = [], {}
    for number, (run, experiment) in enumerate(runs.items()):
        state = "done" if (run / "result.json").exists() else "started" if run.exists() else ""
        figures = ("", "", "")
        with errors.status(f"planning run {number}"):
            try:
                figures = planned(experiment)
            except UserError as error:
                problems.setdefault(str(error), number)
                state, figures = "refused", _settled(experiment)
        rows.append((str(number), run.name, _differences(experiment, first), *figures, state))
        first = first or experiment
    show_table(f"{len(runs)} runs in {folder}", COLUMNS, rows)
    say("memory is that of one process in fp32; bf16 halves the activations")
    refused = [f"✗ run {number} and those like it: {error}" for error, number in problems.items()]
    for line in [*planned.found(), *_found(sweep), *refused]:
        say(line)
    return int(bool(problems))


def _settled(experiment: Experiment) -> tuple[str, str, str]:
    """Steps and warm-up of a run that would be refused, as far as its settings say them without the data."""
    with suppress(UserError):
        trains = any(stage.share for stage in method(experiment.method, **experiment.options).stages)
        if experiment.steps is not None and trains:
            return f"{experiment.steps:,}", f"{warmup_steps(experiment.warmup, experiment.steps):,}", ""
    return "", "", ""


class Planned:
    """Steps, warm-up and memory of the experiments of a sweep; data are read once, and seeds are planned once."""

    def __init__(self, sweep: Sweep) -> None:
        self.start = sweep.start
        self.of_imagenet = sweep.published is not None
        self.divisions: dict[tuple[object, ...], Division] = {}
        self.figures: dict[str, tuple[str, str, str]] = {}

    def __call__(self, experiment: Experiment) -> tuple[str, str, str]:
        alike = replace(experiment, seed=0)
        if self.start is not None and not Path(experiment.model).exists():  # the sweep makes this model first
            alike = replace(alike, model=self.start.model, pretrained="none")
        if alike.id not in self.figures:
            settled = plan(alike, check_images=False, division=self._division(alike))
            settled = divisible(settled, World("cpu"))
            memory = f"{estimate(settled).total / GIB:.1f} GiB" if settled.steps else ""
            warmup = settled.warmup if settled.steps else 0
            self.figures[alike.id] = f"{settled.steps:,}", f"{warmup:,}", memory
        return self.figures[alike.id]

    def _division(self, experiment: Experiment) -> Division:
        source = (experiment.data, experiment.held_out, experiment.held_out_share)
        key = (*source, experiment.test_share)
        if key not in self.divisions:
            self.divisions[key] = divide(
                *source,
                test_share=experiment.test_share,
                check=lambda examples: examples,
                **experiment.keywords,
            )
        return self.divisions[key]

    def found(self) -> list[str]:
        """One line for each source of training data; ImageNet's is complete or not."""
        lines = []
        for (data, *_), division in self.divisions.items():
            count = len(division.train) + (len(division.held_out) if division.share is not None else 0)
            complete = not self.of_imagenet or count == TRAINING_IMAGES
            expected = "" if complete else f"; ImageNet has {TRAINING_IMAGES:,} training images"
            lines.append(f"{COMPLETE if complete else '✗'} {data}: {division}{expected}")
        return lines


def _found(sweep: Sweep) -> list[str]:
    """One line for the weights of each model and for each test set: whether they are here."""
    lines = []
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


def _differences(experiment: Experiment, first: Experiment | None) -> str:
    """Settings and options that are not those of the first experiment; of the first itself, not the defaults."""
    defaults = Experiment(data="", method=experiment.method)
    own, usual = _flat(experiment), _flat(defaults) | ({} if first is None else _flat(first))
    names = [name for name in own if own[name] != usual[name] or (first is None and name == "method")]
    return ", ".join(f"{name} {show(own[name])}" for name in names)


def _flat(experiment: Experiment) -> dict[str, Any]:
    """All settings and options by name, with the defaults of the method's options filled in."""
    settings = experiment.to_json()
    chosen = settings.pop("options")
    return settings | {option.name: option.default for option in options(experiment.method)} | chosen
