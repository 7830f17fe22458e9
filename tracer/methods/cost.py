"""The cost of a method beyond plain finetuning, derived from its stages."""

from __future__ import annotations

from typing import NamedTuple

from tracer.methods.base import Method, Stage


class Cost(NamedTuple):
    """Additional forwards per step, and additional copies of the weights."""

    forwards: tuple[str, ...]
    copies: int


def cost(method: Method) -> Cost:
    """The cost of the most expensive stage; each replica adds a student."""
    costs = [_stage(stage) for stage in method.stages]
    highest = max(costs, key=lambda each: (len(each.forwards), each.copies), default=Cost((), 0))
    copies = max((each.copies for each in costs), default=0)
    if method.replicas is None:
        return Cost(highest.forwards, copies)
    more = method.replicas.count - 1
    return Cost((*highest.forwards, f"{more} more student{'s' * (more > 1)}"), copies + more + 1)  # and θ₀


def _stage(stage: Stage) -> Cost:
    needs = stage.objective.needs
    forwards = []
    if "teacher" in needs:
        forwards.append("teacher on images")
        if "text" in needs:
            forwards.append("teacher on texts")
    if "probe" in needs and stage.probe is not None and stage.probe.drawn:
        forwards.append("student and teacher on probe texts")
    if "anchors" in needs:
        forwards.append("student on anchor pairs")
    copies = (stage.teacher is not None) + (stage.regularizer.copies if stage.regularizer else 0)
    return Cost(tuple(forwards), copies)
