"""What became of one input."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """Survived: the work was done, and right. Refused: one clear sentence, nothing spoilt. Lost: anything else."""

    SURVIVED = "survived"
    REFUSED = "refused"
    LOST = "lost"


class Verdict(NamedTuple):
    """One input, what became of it, and why that is not good enough if it is not."""

    outcome: Outcome
    what: str
    why: str = ""


def survived(what: str) -> Verdict:
    """The work was done, and the result is the right one."""
    return Verdict(Outcome.SURVIVED, what)


def refused(what: str) -> Verdict:
    """It was said clearly what is wrong, and nothing was spoilt."""
    return Verdict(Outcome.REFUSED, what)


def lost(what: str, why: str) -> Verdict:
    """Something was lost, silently wrong, or said in a way that helps nobody."""
    return Verdict(Outcome.LOST, what, why)
