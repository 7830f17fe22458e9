"""The result file: one row for each run, with its command and every answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from studies.emojishift.measure import lacking, suite, unpacked_bits, unpacked_shares, validation
from studies.emojishift.study import Job
from tracer.core.errors import UserError
from tracer.data.embedded.emojishift import emoji_kinds, emoji_names, styles
from tracer.evaluation.suites.emojishift import NAMES
from tracer.runs.run import Run
from tracer.storage.atomic import write_text
from tracer.storage.provenance import origin

Role = Literal["test", "search", "start"]
Measure = Literal["id", "ood", "corrupted", "retention", "ece id", "ece ood"]


class Row(NamedTuple):
    """One run of one arm."""

    study: str
    arm: str
    role: Role  # "search": a run that only chooses the learning rate; "start": a pretraining
    style: str
    fold: int
    seed: int
    rate: float
    run: str
    command: str
    validation: float
    cpu_seconds: float | None
    gap: dict[str, list[float]]
    layers: dict[str, float]
    scores: dict[str, dict[str, dict[str, Any]]]  # by α, then by shift
    strength: float | None = None  # λ, where the arm chose it
    commit: str | None = None  # of the code that trained it
    agreement: float | None = None  # with the pretrained model, over ImageNet's names

    def shifts(self, measure: Measure) -> tuple[str, ...]:
        """The test sets that a measure averages over."""
        if measure == "retention":
            return (NAMES,)
        if measure == "corrupted":
            return corrupted_shifts(self.style)
        if measure.endswith("id"):
            return (self.style,)
        return tuple(each for each in styles() if each != self.style)

    def ids(self, shift: str) -> tuple[str, ...]:
        """The ids of the examples of a test set, in their order."""
        return ids(shift, self.fold)

    def right(self, shift: str, alpha: float = 1.0) -> np.ndarray:
        """Whether each example was answered correctly, in the order of `ids`."""
        scores = self.scores[f"{alpha:g}"][shift]
        return unpacked_bits(scores["right"], scores["n"])

    def sure(self, shift: str, alpha: float = 1.0) -> np.ndarray:
        """The confidence of each answer; zero where it was not stored."""
        scores = self.scores[f"{alpha:g}"][shift]
        return unpacked_shares(scores["sure"]) if "sure" in scores else np.zeros(scores["n"])


def corrupted_shifts(style: str) -> tuple[str, ...]:
    """The test sets of the trained style under each corruption."""
    return tuple(each.name for each in suite(style, 0).shifts if each.derived)


@cache
def ids(shift: str, fold: int) -> tuple[str, ...]:
    """The ids of the examples of a test set, in their order."""
    style = shift.partition(" ")[0]  # what follows names a corruption of the same images
    return tuple(
        emoji_names("strong", "test").ids if shift == NAMES else emoji_kinds(style, fold, "test").ids
    )


def row(job: Job, measures: dict[str, Any], role: Role = "test") -> Row:
    """The row of a finished job; without scores for a search."""
    experiment, tested = job.experiment, role == "test"
    return Row(
        study=job.study,
        arm=job.arm,
        role=role,
        style=job.style,
        fold=job.trial.fold,
        seed=job.trial.seed,
        rate=experiment.lr,
        run=measures["run"],
        command=command(experiment.to_json()),
        validation=measures["validation"],
        cpu_seconds=measures["cpu_seconds"],
        gap=measures["gap"] if tested else {},
        layers=measures["layers"] if tested else {},
        scores=measures["scores"] if tested else {},
        strength=job.setting.strength,
        commit=measures["commit"],
    )


def pretraining_row(name: str, run: Run) -> Row:
    """The row of a pretraining, which has no fold and is validated on the names of held-out pairs."""
    measures, experiment = validation(run, None), run.experiment
    return Row(
        study="pretraining",
        arm=name,
        role="start",
        style="",
        fold=-1,
        seed=experiment.seed,
        rate=experiment.lr,
        run=measures["run"],
        command=command(experiment.to_json()),
        validation=measures["validation"],
        cpu_seconds=None,
        gap={},
        layers={},
        scores={},
        commit=measures["commit"],
    )


def command(experiment: dict[str, Any]) -> str:
    """The command `tracer train …` that repeats the run."""
    settings = ("data", "held_out", "retain", "model", "pretrained")
    settings += ("steps", "batch", "lr", "augment", "precision", "seed")
    words = ["tracer", "train", experiment["method"]]
    settings += ("adapter",) if experiment["adapter"] else ()
    values = {key: experiment[key] for key in settings if experiment[key] not in ((), [])}
    for name, value in {**values, **experiment["options"]}.items():
        items = value if isinstance(value, tuple | list) else (value,)
        words += [f"--{name.replace('_', '-')}", *map(str, items)]
    return shlex.join([*words, "--device", "cpu"])


def write(file: Path, rows: Iterable[Row], command: str) -> None:
    """Write provenance and rows as JSON, one line for each row, so that versions of the file can be diffed."""
    lines = ",\n".join(json.dumps(each._asdict(), ensure_ascii=False) for each in rows)
    write_text(file, f'{json.dumps(origin(command), ensure_ascii=False)[:-1]}, "rows": [\n{lines}\n]}}\n')


def read(file: Path) -> tuple[dict[str, Any], list[Row]]:
    """The provenance and the rows of a result file."""
    try:
        content = json.loads(file.read_text())
        rows = [Row(**each) for each in content.pop("rows")]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file} is not a result file: {error}") from error
    for each, scores in ((row, scores) for row in rows for scores in row.scores.values()):
        if absent := lacking(scores, suite(each.style, each.fold)):
            raise UserError(f"{file}: run {each.run} was not measured on {absent[0]}; make the file again")
    return content, rows
