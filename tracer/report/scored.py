"""What `tracer eval` measured of a run, as its folder holds it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from tracer.core.errors import UserError
from tracer.measure.answers import Answers
from tracer.runs.run import Run

Moment = Literal["before", "after"]
WEIGHTS: dict[Moment, str] = {"before": "pretrained", "after": "result"}  # by name of the weights


def answers_of(folder: Path, moment: Moment, notes: list[str]) -> tuple[Answers, ...]:
    """What the pretrained model or the result answered; a file that cannot be read adds a note.

    Answers of other weights than those in the folder are left out. Where these are gone, as to save room, there is
    nothing that could be taken for them.
    """
    run, by = Run(folder), None
    with suppress(UserError, KeyError):
        by = run.by(WEIGHTS[moment])
    return tuple(run.answers(WEIGHTS[moment]).all(by, notes))


def with_tensors(folder: Path, moment: Moment, known: Answers) -> Answers | None:
    """Answers of which the header is known, with what was predicted; None if that cannot be read."""
    return Run(folder).answers(WEIGHTS[moment]).read(known.name, known.role, known.by, known.key)
