"""The rows of the result file: those of EmojiShift, with the test sets of the tasks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from studies.emojishift.rows import Measure, Row
from studies.photoshift.study import Job
from tracer.core.errors import UserError

ZERO_SHOT = "zero-shot"
ROLES = {"id": "id", "ood": "ood", "retention": "retain", "ece id": "id", "ece ood": "ood"}


class PhotoRow(Row):
    """One run on a task: `study` is the task. The test sets and the ids of their images are in the result file."""

    __slots__ = ()

    def shifts(self, measure: Measure) -> tuple[str, ...]:
        """The test sets that a measure averages over; a task without a shift has its corrupted pictures only."""
        scores = self.scores["1"]
        if measure == "corrupted":
            return tuple(name for name in scores if name.startswith("task "))
        return tuple(name for name, each in scores.items() if each["role"] == ROLES[measure])

    def ids(self, shift: str) -> tuple[str, ...]:
        """The ids of the examples of a test set, in their order; corrupted pictures have those of the clean ones."""
        return image_ids(self.study, shift, self.scores["1"][shift]["n"])


@cache
def image_ids(task: str, shift: str, count: int) -> tuple[str, ...]:
    """One id for each picture of a test set."""
    clean, _, corruption = shift.partition(" ")
    own = f"{clean} corrupted" if corruption and clean == "task" else shift
    return tuple(f"{task} {own}/{number}" for number in range(count))


def row(job: Job, measures: dict[str, Any]) -> PhotoRow:
    """The row of a measured run."""
    return PhotoRow(
        study=job.task,
        arm=job.arm,
        role="test",
        style=job.task,
        fold=0,
        seed=job.seed,
        rate=job.setting.rate,
        strength=job.setting.strength,
        run=job.name,
        command=job.command,
        validation=measures["validation"],
        cpu_seconds=measures["cpu_seconds"],
        gap=measures["gap"],
        layers={},
        scores=measures["scores"],
        commit=measures["commit"],
        agreement=measures["agreement"],
    )


def read(file: Path) -> tuple[dict[str, Any], list[PhotoRow]]:
    """The provenance and the rows of a result file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return content, [PhotoRow(**each) for each in content.pop("rows")]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{file} is not a result file of PhotoShift: {error}") from error
