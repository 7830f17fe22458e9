"""The rows of the result file: those of EmojiShift, with the test sets of the tasks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from studies.emojishift.rows import Measure, Row
from studies.photoshift.study import Job
from studies.photoshift.tasks import TASKS, picture_groups
from tracer.core.errors import UserError

ZERO_SHOT = "zero-shot"
ROLES = {"id": "id", "ood": "ood", "corrupted": "", "retention": "retain", "ece id": "id", "ece ood": "ood"}


class PhotoRow(Row):
    """One run on a task. `study` is the task and `fold` its number, so that rows of several tasks can be compared.

    The pictures of all test sets with one role are taken together, because tasks have different sets.
    """

    __slots__ = ()

    def shifts(self, measure: Measure) -> tuple[str, ...]:
        """The role of the pictures that a measure is computed on."""
        return (ROLES[measure],)

    def sets(self, role: str) -> tuple[str, ...]:
        """The test sets with a role; "" is that of corrupted pictures."""
        return tuple(name for name, each in self.scores["1"].items() if each["role"] == role)

    def ids(self, shift: str) -> tuple[str, ...]:
        """The group of each picture, after a stroke, as in the ids of emoji."""
        return tuple(
            f"/{group}"
            for name in self.sets(shift)
            for group in _groups(self.study, name, self.scores["1"][name]["n"])
        )

    def right(self, shift: str, alpha: float = 1.0) -> np.ndarray:
        """Whether each picture was named correctly, in the order of `ids`."""
        return np.concatenate([super(PhotoRow, self).right(name, alpha) for name in self.sets(shift)])

    def sure(self, shift: str, alpha: float = 1.0) -> np.ndarray:
        """The confidence of each answer; zero where it was not stored."""
        return np.concatenate([super(PhotoRow, self).sure(name, alpha) for name in self.sets(shift)])

    def accuracy(self, name: str, alpha: float = 1.0) -> float:
        """The accuracy on one test set."""
        return float(super().right(name, alpha).mean())

    @property
    def alphas(self) -> tuple[float, ...]:
        """Every α that was scored; 0 is the model before training."""
        return tuple(sorted(map(float, self.scores)))


_groups = cache(picture_groups)


def row(job: Job, measures: dict[str, Any]) -> PhotoRow:
    """The row of a measured run."""
    return PhotoRow(
        study=job.task,
        arm=job.arm,
        role="test",
        style=job.task,
        fold=list(TASKS).index(job.task),
        seed=job.seed,
        rate=job.setting.rate,
        strength=job.setting.strength,
        run=job.name,
        command=job.command,
        validation=measures["validation"],
        cpu_seconds=measures["cpu_seconds"],
        gap=measures["gap"],
        layers=measures.get("layers", {}),
        scores=measures["scores"],
        commit=measures["commit"],
        agreement=measures["agreement"],
    )


def stored(file: Path) -> tuple[dict[str, Any], list[PhotoRow]]:
    """The provenance and the rows of a result file, as they were written."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        rows = [PhotoRow(**each) for each in content.pop("rows")]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file} is not a result file of PhotoShift: {error}") from error
    return content, rows


def read(file: Path) -> tuple[dict[str, Any], list[PhotoRow]]:
    """The provenance and the rows of a result file; each run has the scores of its start as those of α = 0."""
    content, rows = stored(file)
    return content, with_starts(rows)


def with_starts(rows: list[PhotoRow]) -> list[PhotoRow]:
    """The rows, each run with the scores of the zero-shot row of its task as those of α = 0."""
    starts = {each.study: each.scores["1"] for each in rows if each.arm == ZERO_SHOT}
    return [
        each if each.arm == ZERO_SHOT else each._replace(scores={"0": starts[each.study], **each.scores})
        for each in rows
    ]
