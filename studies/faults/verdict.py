"""The verdict on one input: survived, refused or lost."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from tracer.core.errors import UserError


class Outcome(StrEnum):
    """Survived: the work was done, and right. Refused: a clear error, no file changed. Lost: anything else."""

    SURVIVED = "survived"
    REFUSED = "refused"
    LOST = "lost"


class Verdict(NamedTuple):
    """One input, its outcome and, if it was lost, the reason."""

    outcome: Outcome
    what: str
    why: str = ""


def survived(what: str) -> Verdict:
    """The work was done and the result is right."""
    return Verdict(Outcome.SURVIVED, what)


def refused(what: str) -> Verdict:
    """The input was refused with a clear error message and no file was changed."""
    return Verdict(Outcome.REFUSED, what)


def lost(what: str, why: str) -> Verdict:
    """Something was lost or silently wrong, or the error message does not help."""
    return Verdict(Outcome.LOST, what, why)


def judged(what: str, probe: Callable[[], object]) -> Verdict:
    """Survived if the probe returns, refused if it raises UserError with a message, lost if it raises anything else."""
    try:
        probe()
    except UserError as error:
        return refused(what) if str(error).strip() else lost(what, "refused without a message")
    except Exception as error:  # noqa: BLE001  (any other exception counts as a lost input)
        return lost(what, f"{type(error).__name__}: {error}"[:600])
    return survived(what)
