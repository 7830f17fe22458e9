"""The paper's claims, each with what it would mean here, and the verdict that the runs allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from tracer.evidence.looks import (
    FEWEST,
    Arms,
    Look,
    Part,
    alike,
    all_of,
    at_equal_task,
    better,
    cheap,
    drifting_layers,
    keeps_more,
    lasting_gap,
    no_worse,
)
from tracer.evidence.results import Row
from tracer.evidence.study import ZERO_SHOT

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


ONLY = [f"TRACER {term} only" for term in ("feature", "relational", "interactive", "cross")]
WITHOUT = [f"TRACER without {term}" for term in ("feature", "relational", "interactive", "cross")]
BETAS = [f"TRACER β={beta:g}" for beta in (0.2, 1.0, 1.5)]
SPARSE = [f"TRACER every {every}" for every in (5, 50)]
RELEASED = [f"{name}, released clock" for name in SPARSE]
SPRINGS = ["L2-SP", *(f"L2-SP λ={strength:g}" for strength in (0.1, 1.0, 10.0))]
MATCHED = "EMA of matched age"
STIFF = ("static λ=10", "L2-SP λ=1")
LOOSE = ["static", *(f"static λ={strength:g}" for strength in (0.03, 0.1, 0.3))]
STRENGTHS = [f"TRACER λ={strength:g}" for strength in (0.1, 10.0)]

CLAIMS = (
    Claim(
        "Self-distillation forgets less than direct finetuning",
        "main",
        ("TRACER", "static", "direct FT"),
        all_of(better("retention", "TRACER", "direct FT"), better("retention", "static", "direct FT")),
    ),
    Claim(
        "TRACER and a static teacher forget less than L2-SP",
        "main",
        ("TRACER", "static", "L2-SP"),
        all_of(better("retention", "TRACER", "L2-SP"), better("retention", "static", "L2-SP")),
    ),
    Claim(
        "Ours: TRACER forgets less than L2-SP, whatever its λ, and learns as much (within one point)",
        "strengths",
        ("TRACER", *SPRINGS),
        all_of(
            better("retention", "TRACER", *SPRINGS),
            *(no_worse("id", "TRACER", spring) for spring in SPRINGS),
        ),
    ),
    Claim(
        "A WMA teacher keeps a gap to the student (a tenth of its peak) where an EMA teacher collapses onto it",
        "main",
        ("TRACER", "EMA"),
        lasting_gap("TRACER", "EMA"),
    ),
    Claim(
        "A WMA teacher is better than a static one, at no cost in task accuracy (within one point)",
        "main",
        ("TRACER", "static"),
        keeps_more("TRACER", "static"),
    ),
    Claim(
        "A WMA teacher is better than an EMA teacher, on the task, OOD and in retention",
        "main",
        ("TRACER", "EMA"),
        all_of(*(better(measure, "TRACER", "EMA") for measure in ("id", "ood", "retention"))),
    ),
    Claim(
        "Ours: and than an EMA of the same mean age",
        "variants",
        ("TRACER", MATCHED),
        all_of(*(better(measure, "TRACER", MATCHED) for measure in ("id", "ood", "retention"))),
    ),
    Claim(
        "TRACER improves OOD accuracy over FLYP and CaRot",
        "main",
        ("TRACER", "FLYP", "CaRot"),
        better("ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "TRACER improves OOD calibration over FLYP and CaRot",
        "main",
        ("TRACER", "FLYP", "CaRot"),
        better("ece ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "FD and CRD are the strongest terms",
        "variants",
        tuple(ONLY),
        all_of(better("ood", ONLY[0], *ONLY[2:]), better("ood", ONLY[1], *ONLY[2:])),
        best=True,
    ),
    Claim(
        "All four terms together are best",
        "variants",
        ("TRACER", *ONLY, *WITHOUT),
        better("ood", "TRACER", *ONLY, *WITHOUT),
        best=True,
    ),
    Claim(
        "A moderate λ is best", "strengths", ("TRACER", *STRENGTHS), better("ood", "TRACER", *STRENGTHS), True
    ),
    Claim(
        "The update interval hardly matters (right clock; within one point)",
        "variants",
        ("TRACER", *SPARSE),
        alike("ood", "TRACER", *SPARSE),
    ),
    Claim(
        "The update interval hardly matters (released clock; within one point)",
        "variants",
        ("TRACER", *RELEASED),
        alike("ood", "TRACER", *RELEASED),
    ),
    Claim("β = 0.5 is best", "variants", ("TRACER", *BETAS), better("ood", "TRACER", *BETAS), best=True),
    Claim(
        "Deeper layers drift under direct finetuning, and TRACER keeps them",
        "main",
        ("TRACER", "direct FT"),
        drifting_layers("direct FT", "TRACER"),
    ),
    Claim(
        "TRACER costs less than CaRot, and at most half as much again as direct finetuning",
        "main",
        ("TRACER", "CaRot", "direct FT"),
        all_of(cheap("TRACER", "CaRot", 1.0), cheap("TRACER", "direct FT", 1.5)),
    ),
    Claim(
        "Ours: finetuning learns the task: more than zero-shot on ID",
        "main",
        (ZERO_SHOT.name, "direct FT", "FLYP", "TRACER"),
        all_of(*(better("id", arm, ZERO_SHOT.name) for arm in ("direct FT", "FLYP", "TRACER"))),
    ),
    Claim(
        "Ours: the same where the pretrained model is weak on the task",
        "weak",
        (ZERO_SHOT.name, "FLYP", "TRACER"),
        all_of(*(better("id", arm, ZERO_SHOT.name) for arm in ("FLYP", "TRACER"))),
    ),
    Claim(
        "Ours: TRACER costs no OOD accuracy against zero-shot (within one point)",
        "main",
        (ZERO_SHOT.name, "TRACER"),
        no_worse("ood", "TRACER", ZERO_SHOT.name, condition=False),
    ),
    Claim(
        "Ours: TRACER is better than mixing weights (WiSE-FT, α = 0.5) after direct finetuning or FLYP",
        "main",
        ("TRACER", "direct FT", "FLYP"),
        all_of(
            *(better(m, "TRACER", "direct FT", "FLYP", other_alpha=0.5) for m in ("id", "ood", "retention"))
        ),
    ),
    Claim(
        "Ours: where the pretrained model is weak on the task, TRACER is better than a static teacher in all three",
        "weak",
        ("TRACER", "static"),
        all_of(*(better(measure, "TRACER", "static") for measure in ("id", "ood", "retention"))),
    ),
    Claim(
        "Ours: there it keeps more than a static teacher whose λ lets it learn as much (within two points)",
        "weak strengths",
        ("TRACER", *LOOSE),
        at_equal_task("TRACER", LOOSE, "ood", "retention"),
    ),
    Claim(
        "Ours: there Lipsum-FT keeps more with a moving teacher than with its frozen one, and learns as much",
        "weak others",
        ("lipsum WMA", "lipsum"),
        keeps_more("lipsum WMA", "lipsum"),
    ),
    Claim(
        "Ours: with λ chosen beside the rate, TRACER improves OOD accuracy over FLYP and CaRot",
        "chosen λ",
        ("TRACER", "FLYP", "CaRot"),
        better("ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "Ours: with λ chosen beside the rate, TRACER keeps more than a static teacher and L2-SP, and learns as much",
        "chosen λ",
        ("TRACER", "static", "L2-SP"),
        keeps_more("TRACER", "static", "L2-SP"),
    ),
    Claim(
        "Ours: TRACER improves OOD accuracy over FLYP and CaRot with another trained style",
        "second style",
        ("TRACER", "FLYP", "CaRot"),
        better("ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "Ours: the same, with TRACER at the rate that the others chose",
        "second style",
        ("TRACER at 0.001", "FLYP", "CaRot"),
        better("ood", "TRACER at 0.001", "FLYP", "CaRot"),
    ),
    Claim(
        "Ours: TRACER is better than direct finetuning, FLYP and CaRot on corrupted pictures",
        "main",
        ("TRACER", "direct FT", "FLYP", "CaRot"),
        better("corrupted", "TRACER", "direct FT", "FLYP", "CaRot"),
    ),
    Claim(
        "Ours: on folds that did not choose it `steady` (no ICL, λ = 10) keeps more OOD than TRACER and learns as much",
        "fresh folds",
        ("steady", "TRACER"),
        keeps_more("steady", "TRACER", measures=("ood",)),
    ),
    Claim(
        "Ours: the same against the static teacher",
        "fresh folds",
        ("steady", "static"),
        keeps_more("steady", "static", measures=("ood",)),
    ),
    Claim(
        "Ours: the same against what else is stiff: a static teacher at λ = 10, and L2-SP at λ = 1",
        "fresh folds",
        ("steady", "static λ=10", "L2-SP λ=1"),
        keeps_more("steady", *STIFF, measures=("ood",)),
    ),
    Claim(
        "Ours: there it learns more than zero-shot, and costs no OOD accuracy (within one point)",
        "fresh folds",
        ("steady", ZERO_SHOT.name),
        all_of(
            better("id", "steady", ZERO_SHOT.name),
            no_worse("ood", "steady", ZERO_SHOT.name, condition=False),
        ),
    ),
    Claim(
        "Ours: Lipsum-FT keeps more OOD than `steady` there, and learns as much",
        "fresh folds",
        ("lipsum", "steady"),
        keeps_more("lipsum", "steady", measures=("ood",)),
    ),
    Claim(
        "Ours: over three pretrained models Lipsum-FT keeps more than TRACER, and learns as much",
        "three starts",
        ("lipsum", "TRACER"),
        keeps_more("lipsum", "TRACER"),
    ),
    Claim(
        "Ours: the same where the pretrained model is weak on the task, for Lipsum-FT",
        "weak",
        ("lipsum", "TRACER"),
        keeps_more("lipsum", "TRACER"),
    ),
    Claim(
        "Ours: over three pretrained models `steady` keeps more than TRACER, and learns as much",
        "three starts",
        ("steady", "TRACER"),
        keeps_more("steady", "TRACER"),
    ),
    Claim(
        "Ours: the same where the pretrained model is weak on the task, for `steady`",
        "weak",
        ("steady", "TRACER"),
        keeps_more("steady", "TRACER"),
    ),
    Claim(
        "Ours: TRACER keeps more than FLYP over three pretrained models, on OOD and in retention",
        "three starts",
        ("TRACER", "FLYP"),
        all_of(better("ood", "TRACER", "FLYP"), better("retention", "TRACER", "FLYP")),
    ),
    Claim(
        "Ours: over three pretrained models TRACER is better than a static teacher on the task, OOD and in retention",
        "three starts",
        ("TRACER", "static"),
        all_of(*(better(measure, "TRACER", "static") for measure in ("id", "ood", "retention"))),
    ),
)
