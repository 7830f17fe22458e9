"""The paper's claims, each with what it would mean here, and the verdict that the runs allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from tracer.evidence.looks import (
    Arms,
    Look,
    Part,
    alike,
    all_of,
    better,
    cheap,
    drifting_layers,
    lasting_gap,
    no_worse,
)
from tracer.evidence.results import Row

FEWEST = 3  # runs of an arm, below which nothing is concluded

Verdict = Literal["holds", "holds partly", "not seen here", "not tested yet"]


class Claim(NamedTuple):
    """A claim, the study and the arms that can tell, and how to look."""

    text: str
    study: str
    needs: tuple[str, ...]
    look: Look


def verdict(parts: Sequence[Part]) -> Verdict:
    """Whether all comparisons lie above zero with their intervals, some, or none; no comparison is no verdict."""
    if not parts:
        return "not tested yet"
    above = [part.found.low > 0 for part in parts]
    return "holds" if all(above) else "holds partly" if any(above) else "not seen here"


def looked(claim: Claim, studies: Mapping[str, Arms]) -> list[Part]:
    """What the runs say about a claim; nothing where an arm of it has fewer runs than it takes to tell."""
    arms = studies.get(claim.study, {})
    return claim.look(arms) if all(len(arms.get(name, ())) >= FEWEST for name in claim.needs) else []


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
BETAS = [f"TRACER β={beta:g}" for beta in (0.2, 0.7, 1.0, 1.5)]
SPARSE = [f"TRACER every {every}" for every in (5, 15, 50)]
RELEASED = [f"{name}, released clock" for name in SPARSE]
SPRINGS = ["L2-SP", *(f"L2-SP λ={strength:g}" for strength in (0.1, 1.0, 10.0))]
MATCHED = "EMA of matched age"
STIFF = ("static λ=10", "L2-SP λ=1")
STRENGTHS = [f"TRACER λ={strength:g}" for strength in (0.1, 10.0)]

CLAIMS = (
    Claim(
        "Self-distillation forgets less than direct finetuning",
        "main",
        ("TRACER", "static", "direct FT"),
        all_of(better("retention", "TRACER", "direct FT"), better("retention", "static", "direct FT")),
    ),
    Claim(
        "TRACER forgets less than L2-SP, whatever its λ, and learns as much (within one point)",
        "strengths",
        ("TRACER", *SPRINGS),
        all_of(
            better("retention", "TRACER", *SPRINGS),
            *(no_worse("id", "TRACER", spring) for spring in SPRINGS),
        ),
    ),
    Claim(
        "A WMA teacher keeps a gap to the student where an EMA teacher collapses onto it",
        "main",
        ("TRACER", "EMA"),
        lasting_gap("TRACER", "EMA"),
    ),
    Claim(
        "A WMA teacher is better than a static one, at no cost in task accuracy (within one point)",
        "main",
        ("TRACER", "static"),
        all_of(
            no_worse("id", "TRACER", "static"),
            *(better(measure, "TRACER", "static") for measure in ("ood", "retention")),
        ),
    ),
    Claim(
        "A WMA teacher is better than an EMA teacher",
        "main",
        ("TRACER", "EMA"),
        all_of(*(better(measure, "TRACER", "EMA") for measure in ("id", "ood", "retention"))),
    ),
    Claim(
        "Ours: a WMA teacher is better than an EMA of the same mean age",
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
    ),
    Claim(
        "All four terms together are best",
        "variants",
        ("TRACER", *ONLY, *WITHOUT),
        better("ood", "TRACER", *ONLY, *WITHOUT),
    ),
    Claim("A moderate λ is best", "strengths", ("TRACER", *STRENGTHS), better("ood", "TRACER", *STRENGTHS)),
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
    Claim("β = 0.5 is best", "variants", ("TRACER", *BETAS), better("ood", "TRACER", *BETAS)),
    Claim(
        "Deeper layers drift under direct finetuning, and TRACER keeps them",
        "main",
        ("TRACER", "direct FT"),
        drifting_layers("direct FT", "TRACER"),
    ),
    Claim(
        "TRACER costs little more than FLYP (at most half as much again)",
        "main",
        ("TRACER", "FLYP"),
        cheap("TRACER", "FLYP", 1.5),
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
        "Ours: where the pretrained model is weak on the task, a moving teacher is better than a static one",
        "weak",
        ("TRACER", "static"),
        all_of(*(better(measure, "TRACER", "static") for measure in ("id", "ood", "retention"))),
    ),
    Claim(
        "Ours: TRACER improves OOD accuracy over FLYP and CaRot with another trained style",
        "second style",
        ("TRACER", "FLYP", "CaRot"),
        better("ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "Ours: TRACER is better than direct finetuning, FLYP and CaRot on corrupted pictures",
        "main",
        ("TRACER", "direct FT", "FLYP", "CaRot"),
        better("corrupted", "TRACER", "direct FT", "FLYP", "CaRot"),
    ),
    Claim(
        "Ours: without ICL and at λ = 10 TRACER is better, on folds that had no part in choosing so",
        "fresh folds",
        ("steady", "TRACER"),
        all_of(
            no_worse("id", "steady", "TRACER"),
            *(better(measure, "steady", "TRACER") for measure in ("ood", "retention")),
        ),
    ),
    Claim(
        "Ours: the same against the static teacher",
        "fresh folds",
        ("steady", "static"),
        all_of(
            no_worse("id", "steady", "static"),
            *(better(measure, "steady", "static") for measure in ("ood", "retention")),
        ),
    ),
    Claim(
        "Ours: the same against what else is stiff: a static teacher at λ = 10, and L2-SP at λ = 1",
        "fresh folds",
        ("steady", "static λ=10", "L2-SP λ=1"),
        all_of(
            *(no_worse("id", "steady", stiff) for stiff in STIFF),
            *(better(measure, "steady", *STIFF) for measure in ("ood", "retention")),
        ),
    ),
    Claim(
        "Ours: over three pretrained models it is better than TRACER",
        "three starts",
        ("steady", "TRACER"),
        all_of(
            no_worse("id", "steady", "TRACER"),
            *(better(measure, "steady", "TRACER") for measure in ("ood", "retention")),
        ),
    ),
    Claim(
        "Ours: where the pretrained model is weak on the task, it is better than TRACER",
        "weak",
        ("steady", "TRACER"),
        all_of(
            no_worse("id", "steady", "TRACER"),
            *(better(measure, "steady", "TRACER") for measure in ("ood", "retention")),
        ),
    ),
    Claim(
        "Ours: TRACER keeps more than FLYP over three pretrained models, on OOD and in retention",
        "three starts",
        ("TRACER", "FLYP"),
        all_of(better("ood", "TRACER", "FLYP"), better("retention", "TRACER", "FLYP")),
    ),
    Claim(
        "Ours: over three pretrained models a WMA teacher is better than a static one",
        "three starts",
        ("TRACER", "static"),
        all_of(*(better(measure, "TRACER", "static") for measure in ("id", "ood", "retention"))),
    ),
)
