"""A claim, how to look for it in the runs, and the verdict that they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from studies.emojishift.looks import FEWEST, Arms, Look, Part
from studies.emojishift.rows import Row

Verdict = Literal[
    "holds",
    "holds partly",
    "holds partly, and partly the opposite",
    "not seen here",
    "not seen here: the opposite",
    "not seen here: another is better",
    "not tested yet",
]


class Claim(NamedTuple):
    """A claim, the study and the arms that can tell, and how to look."""

    text: str
    study: str
    needs: tuple[str, ...]
    look: Look
    best: bool = False  # of all that are compared: one that is better refutes it


def verdict(parts: Sequence[Part], best: bool = False) -> Verdict:
    """Whether all comparisons speak for a claim, some, or none; a condition that is met is no support by itself."""
    if not parts:
        return "not tested yet"
    against = any(part.speaks == "against" for part in parts)
    support = [part.speaks == "for" for part in parts if not part.condition]
    if all(part.speaks == "for" for part in parts):
        return "holds"
    if best and against:
        return "not seen here: another is better"
    if any(support):
        return "holds partly, and partly the opposite" if against else "holds partly"
    return "not seen here: the opposite" if against else "not seen here"


def looked(claim: Claim, studies: Mapping[str, Arms]) -> list[Part]:
    """What the runs say about a claim; nothing where its arms have too few runs to tell, or not the same ones."""
    arms = studies.get(claim.study, {})
    trials = {tuple((row.fold, row.seed) for row in arms.get(name, ())) for name in claim.needs}
    return claim.look(arms) if len(trials) == 1 and len(trials.pop()) >= FEWEST else []


def grouped(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Test runs by study and arm, in the order of fold and seed."""
    studies: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.role == "test":
            studies.setdefault(row.study, {}).setdefault(row.arm, []).append(row)
    for arms in studies.values():
        for runs in arms.values():
            runs.sort(key=lambda row: (row.fold, row.seed))
    return studies
