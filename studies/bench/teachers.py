"""TRACER steps with a cheaper forward of the teacher, against FLYP."""

from __future__ import annotations

import copy
from dataclasses import replace

from studies.bench.steps import batch_of, state_of
from studies.bench.timing import Timer, Times
from studies.emojishift.cheaper_teachers import CHEAPER, CheaperShadow, cheaper_teacher
from tracer.methods.base import method
from tracer.models.student import load
from tracer.training.step import step

TIMED = {
    name: CHEAPER[name] for name in CHEAPER if name != "tracer_bf16"
}  # whose rounding is not what would be fast


def cheaper(model: str, count: int, timer: Timer) -> Times:
    """FLYP, TRACER, and TRACER with each cheaper teacher, all of one student."""
    student = load(model)
    exact = state_of(method("tracer").stages[0], student)
    assert exact.shadow is not None
    batch = batch_of(student, count)
    states = {"FLYP": replace(exact, stage=method("flyp").stages[0], shadow=None), "TRACER": exact}
    for name, forward in TIMED.items():
        with cheaper_teacher(name):
            stage = method(name).stages[0]
        shadow = copy.copy(exact.shadow)  # of the same model: two more do not fit in memory
        shadow.__class__, shadow.forward = CheaperShadow, forward  # pyright: ignore[reportAttributeAccessIssue]
        states[name] = replace(exact, stage=stage, shadow=shadow)
    works = {name: lambda state=state: step(state, batch) for name, state in states.items()}
    return timer(works)
