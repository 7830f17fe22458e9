"""Evaluate a run or a model: `tracer eval RUN|MODEL --data … | --suite … --root …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.api.evaluate import score
from tracer.cli.flags import cli
from tracer.cli.training import show_verdict
from tracer.core.command_line import command_line
from tracer.core.errors import printable, unknown
from tracer.data.reading import AS_FOUND, Reading
from tracer.evaluation.tables import FORMATS
from tracer.evaluation.target import run_at, targets
from tracer.evaluation.test_sets import TestSets
from tracer.parallel import launched
from tracer.terminal import console, errors, say, stop_at_once

NOT_WRITTEN = "nothing is written: --out FOLDER keeps predictions and all scores"


def main(arguments: list[str]) -> int:
    def evaluate(
        model: Annotated[str, tyro.conf.Positional],
        data: tuple[str, ...] = (),
        suite: str | None = None,
        root: Path | None = None,
        at: tuple[str, ...] = (),
        corrupt: tuple[str, ...] = (),
        pretrained: str = "auto",
        weights: str | None = None,
        templates: str | None = None,
        reading: Reading = AS_FOUND,
        allow_partial: bool = False,
        format: str = "text",
        out: Path | None = None,
        device: str = "auto",
    ) -> int:
        """Accuracy, calibration and caption retrieval of a run, an exported folder or an open_clip model.

        A run is evaluated before and after training. Its predictions are written to its folder, those of other models
        to --out, so that further metrics need no model. Under torchrun the images are divided among the processes.

        Args:
            model: a run's folder, an exported folder, or the name of a model.
            data: test sets; several are given as role=data with a role of id, ood or retain.
            suite: imagenet, iwildcam, fmow or emojishift, instead of --data; emojishift:STYLE:FOLD for another than the
                run's own.
            root: the folder of the suite's data sets.
            at: sets of imagenet in other places, each NAME=PLACE: a folder, a table, shards or hf:NAME, where NAME is
                val, v2, r, a, sketch or objectnet.
            corrupt: also evaluate the id sets under corruptions, each KIND:SEVERITY, KIND (severities 1, 3, 5) or all:
                gaussian_noise, shot_noise, gaussian_blur, defocus_blur, jpeg, brightness, contrast, pixelate.
            pretrained: weights, if MODEL is a name.
            weights: of a run: result, student, teacher, pretrained, or the name of a merge; by default both result and
                pretrained.
            templates: prompt templates: openai, simple, name, or a file.
            allow_partial: score incomplete data sets too, and mark their scores.
            format: text, markdown, latex, csv or json.
            out: folder for predictions and scores; by default RUN/predictions, and none for a model that is not a run.
            device: auto, cpu, cuda or mps.
        """
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        sets = TestSets(
            data=data,
            suite=suite,
            root=root,
            at=at,
            corrupt=corrupt,
            templates=templates,
            reading=reading,
            allow_partial=allow_partial,
        )
        chosen = targets(model, pretrained, weights, out)
        with launched(device, lost=stop_at_once) as world:
            scores = score(chosen, sets, world, _print)
            if world.first:
                console.out(printable(scores.table(format)), highlight=False)
                places = [str(target.keep) for target in chosen if target.keep is not None]
                _print(f"predictions and all scores are in {' and '.join(places)}" if places else NOT_WRITTEN)
                if format == "text":  # the other formats are read by programs
                    show_verdict(
                        scores.verdict, command_line("report", model) if run_at(model) else None, "images"
                    )
        return 0

    return cli(evaluate, arguments, "tracer eval")


def _print(line: str) -> None:
    say(line, to=errors)
