"""Evaluate a run or a model: `tracer eval RUN|MODEL --data DATA`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from tracer.api.evaluate import score
from tracer.api.terminal import console, errors, say, stop_at_once
from tracer.cli.flags import cli
from tracer.cli.training import show_verdict
from tracer.core.command_line import command_line
from tracer.core.errors import printable, unknown
from tracer.evaluation.render import FORMATS
from tracer.evaluation.target import run_at, targets
from tracer.evaluation.test_sets import TestSets
from tracer.parallel import launched

NOT_WRITTEN = "nothing is written: --out FOLDER keeps predictions and all scores"


@dataclass(frozen=True, kw_only=True)
class Flags(TestSets):
    """Accuracy, calibration and caption retrieval of a run, an exported folder or an
    open_clip model.

    A run is evaluated before and after training. Its predictions are written to its
    folder, those of other models to --out, so that further metrics need no model.
    Under torchrun the images are divided among the processes.
    """

    model: Annotated[str, tyro.conf.Positional]
    """A run's folder, an exported folder, or the name of a model."""
    pretrained: str = "auto"
    """Weights, if MODEL is a name."""
    weights: str | None = None
    """Of a run, to compare with pretrained: result, student, teacher, or the name of a merge; by default result."""
    format: str = "text"
    """text, markdown, latex, csv or json."""
    out: Path | None = None
    """Folder for predictions and scores; by default RUN/predictions, and none for a model that is not a run."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""


def main(arguments: list[str]) -> int:
    flags = cli(Flags, arguments, "tracer eval")
    if flags.format not in FORMATS:
        raise unknown("format", flags.format, FORMATS)
    text = flags.format == "text"  # the other formats are read by programs
    models = targets(flags.model, flags.pretrained, flags.weights, flags.out, compare=text)
    with launched(flags.device, lost=stop_at_once) as world:
        scores = score(models, flags, world, _print)
        if world.first:
            console.out(printable(scores.table(flags.format)), highlight=False)
            places = [str(model.keep) for model in models if model.keep is not None]
            _print(f"predictions and all scores are in {' and '.join(places)}" if places else NOT_WRITTEN)
            if text:
                report = command_line("report", flags.model) if run_at(flags.model) else None
                if scores.verdict is None:
                    say(scores.sentence)
                show_verdict(scores.verdict, report, "images")
    return 0


def _print(line: str) -> None:
    say(line, to=errors)
