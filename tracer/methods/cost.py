"""What a method costs beyond training the student: read off its stages, not typed by hand."""

from __future__ import annotations

from typing import NamedTuple

from tracer.methods.base import Method, Stage


class Cost(NamedTuple):
    """Forwards a step beside the student's own on its batch, and copies of the weights beside the student's."""

    forwards: tuple[str, ...]
    copies: int

    @property
    def told(self) -> str:
        """The forwards in words."""
        return ", ".join(self.forwards) or "none"


def cost(method: Method) -> Cost:
    """The dearest stage's forwards and copies; replicas multiply the student."""
    costs = [_stage(stage) for stage in method.stages]
    dearest = max(costs, key=lambda each: (len(each.forwards), each.copies), default=Cost((), 0))
    copies = max((each.copies for each in costs), default=0)
    if method.replicas is None:
        return Cost(dearest.forwards, copies)
    more = method.replicas.count - 1
    return Cost((*dearest.forwards, f"{more} more student{'s' * (more > 1)}"), copies + more + 1)  # and θ₀


def _stage(stage: Stage) -> Cost:
    needs = stage.objective.needs
    forwards = []
    if "teacher" in needs:
        forwards.append("teacher on images")
        if "text" in needs:
            forwards.append("teacher on texts")
    if "probe" in needs and stage.probe is not None and stage.probe.drawn:
        forwards.append("student and teacher on further texts")
    if "anchors" in needs:
        forwards.append("student on anchor pairs")
    copies = (stage.teacher is not None) + (stage.regularizer.copies if stage.regularizer else 0)
    return Cost(tuple(forwards), copies)
