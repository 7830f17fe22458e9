"""Claims and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from studies.emojishift.checks import MIN_RUNS, Arms, Check, Comparison
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
    """A claim, the study and arms that test it, and the comparisons it rests on."""

    text: str
    study: str
    needs: tuple[str, ...]
    check: Check
    best: bool = False  # the claim is that an arm is best: a better one refutes it


def verdict(parts: Sequence[Comparison], best: bool = False) -> Verdict:
    """Whether all comparisons support a claim, some, or none; a condition that is met is no support by itself."""
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


def claim_comparisons(claim: Claim, studies: Mapping[str, Arms]) -> list[Comparison]:
    """The comparisons of a claim; none if its arms have too few runs, or not the same folds and seeds."""
    arms = studies.get(claim.study, {})
    trials = {tuple((row.fold, row.seed) for row in arms.get(name, ())) for name in claim.needs}
    return claim.check(arms) if len(trials) == 1 and len(trials.pop()) >= MIN_RUNS else []


def grouped(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Test runs by study and arm, sorted by fold and seed."""
    studies: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.role == "test":
            studies.setdefault(row.study, {}).setdefault(row.arm, []).append(row)
    for arms in studies.values():
        for runs in arms.values():
            runs.sort(key=lambda row: (row.fold, row.seed))
    return studies
