"""Evaluate a run or a model: `tracer eval RUN|MODEL --data DATA`."""

from __future__ import annotations

from pathlib import Path

from tracer.api.evaluate import score
from tracer.api.terminal import console, errors, put, say, stop_at_once
from tracer.cli.flags import command
from tracer.cli.training import show_verdict
from tracer.core.command_line import command_line
from tracer.core.errors import printable, unknown
from tracer.evaluation.render import FORMATS
from tracer.evaluation.target import run_at, targets
from tracer.evaluation.test_sets import TestSets
from tracer.parallel import launched

NOT_WRITTEN = "nothing is written: --out FOLDER keeps predictions and all scores"


@command("tracer eval")
def main(
    model: str,
    /,
    sets: TestSets,
    pretrained: str = "auto",
    weights: str | None = None,
    format: str = "text",
    out: Path | None = None,
    device: str = "auto",
) -> int:
    """Accuracy, calibration and caption retrieval of a run, an exported folder or an
    open_clip model.

    A run is evaluated before and after training. Its predictions are written to its
    folder, those of other models to --out, so that further metrics need no model.
    Under torchrun the images are divided among the processes.

    Args:
        model: a run's folder, an exported folder, or the name of a model.
        pretrained: weights, if MODEL is a name.
        weights: of a run, to compare with pretrained: result, student, teacher, or the name of a merge; by default
            result.
        format: text, markdown, latex, csv or json.
        out: folder for predictions and scores; by default RUN/predictions, and none for a model that is not a run.
        device: auto, cpu, cuda or mps.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    text = format == "text"  # the other formats are read by programs
    models = targets(model, pretrained, weights, out, compare=text)
    with launched(device, lost=stop_at_once) as world:
        scores = score(models, sets, world, _print)
        if world.first:
            table = scores.table(format)
            console.out(printable(table), highlight=False) if text else put(table)
            places = [str(each.keep) for each in models if each.keep is not None]
            _print(f"predictions and all scores are in {' and '.join(places)}" if places else NOT_WRITTEN)
            if text:
                report = command_line("report", model) if run_at(model) else None
                if scores.verdict is None:
                    say(scores.sentence)
                show_verdict(scores.verdict, report, "images")
    return 0


def _print(line: str) -> None:
    say(line, to=errors)
