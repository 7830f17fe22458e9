"""Results as they are kept: one row a run, with its command, and every single answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from studies.emojishift.measure import chosen, lacking, suite, unpacked_bits, unpacked_shares
from studies.emojishift.study import Job
from tracer.core.errors import UserError
from tracer.data.emojishift import emoji_kinds, emoji_names
from tracer.evaluation.suites.emojishift import NAMES
from tracer.runs.run import Run
from tracer.storage.atomic import write_text
from tracer.storage.provenance import origin

Role = Literal["test", "search", "start"]


class Row(NamedTuple):
    """One run of one arm."""

    study: str
    arm: str
    role: Role  # "search" runs only chose a rate, "start" is a pretraining
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

    def right(self, shift: str, alpha: float = 1.0) -> np.ndarray:
        """Whether each example was right, in the order of `ids`."""
        found = self.scores[f"{alpha:g}"][shift]
        return unpacked_bits(found["right"], found["n"])

    def sure(self, shift: str, alpha: float = 1.0) -> np.ndarray:
        """The confidence of each answer; zero where it was not kept."""
        found = self.scores[f"{alpha:g}"][shift]
        return unpacked_shares(found["sure"]) if "sure" in found else np.zeros(found["n"])


@cache
def ids(shift: str, fold: int) -> tuple[str, ...]:
    """The examples of a shift, in their order."""
    style = shift.partition(" ")[0]  # what follows is a corruption of the same pictures
    return tuple(
        emoji_names("strong", "test").ids if shift == NAMES else emoji_kinds(style, fold, "test").ids
    )


def row(job: Job, found: dict[str, Any], role: Role = "test") -> Row:
    """What one job came to; a search needs no scores."""
    experiment, tested = job.experiment, role == "test"
    return Row(
        study=job.study,
        arm=job.arm,
        role=role,
        style=job.style,
        fold=job.trial.fold,
        seed=job.trial.seed,
        rate=experiment.lr,
        run=found["run"],
        command=command(experiment.to_json()),
        validation=found["validation"],
        cpu_seconds=found["cpu_seconds"],
        gap=found["gap"] if tested else {},
        layers=found["layers"] if tested else {},
        scores=found["scores"] if tested else {},
        strength=job.setting.strength,
        commit=found["commit"],
    )


def beginning(name: str, run: Run) -> Row:
    """The row of a pretraining: it has no fold, and is validated on the names of held-out pairs."""
    found, experiment = chosen(run, None), run.experiment
    return Row(
        study="pretraining",
        arm=name,
        role="start",
        style="",
        fold=-1,
        seed=experiment.seed,
        rate=experiment.lr,
        run=found["run"],
        command=command(experiment.to_json()),
        validation=found["validation"],
        cpu_seconds=None,
        gap={},
        layers={},
        scores={},
        commit=found["commit"],
    )


def command(experiment: dict[str, Any]) -> str:
    """`tracer train …`, which makes the run again."""
    settings = ("data", "held_out", "retain", "model", "pretrained")
    settings += ("steps", "batch", "lr", "augment", "precision", "seed")
    words = ["tracer", "train", experiment["method"]]
    said = {key: experiment[key] for key in settings if experiment[key] not in ((), [])}
    for name, value in {**said, **experiment["options"]}.items():
        values = value if isinstance(value, tuple | list) else (value,)
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return shlex.join([*words, "--device", "cpu"])


def write(file: Path, rows: Iterable[Row], asked: str) -> None:
    """One line a row, so that two versions of a file can be compared."""
    lines = ",\n".join(json.dumps(each._asdict(), ensure_ascii=False) for each in rows)
    write_text(file, f'{json.dumps(origin(asked), ensure_ascii=False)[:-1]}, "rows": [\n{lines}\n]}}\n')


def read(file: Path) -> tuple[dict[str, Any], list[Row]]:
    """The head of a result file, and its rows."""
    try:
        found = json.loads(file.read_text())
        rows = [Row(**each) for each in found.pop("rows")]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file} is no file of results: {error}") from error
    for each, scores in ((row, scores) for row in rows for scores in row.scores.values()):
        if absent := lacking(scores, suite(each.style, each.fold)):
            raise UserError(f"{file}: run {each.run} was not measured on {absent[0]}; make the file again")
    return found, rows
