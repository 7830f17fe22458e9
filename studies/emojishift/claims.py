"""The paper's claims, each with the comparisons on EmojiShift that test it."""

from __future__ import annotations

from studies.emojishift.checks import (
    alike,
    all_of,
    better,
    better_in_all,
    cheap,
    drifting_layers,
    keeps_more,
    lasting_gap,
)
from studies.emojishift.verdict import Claim

ONLY = [f"TRACER {term} only" for term in ("feature", "relational", "interactive", "cross")]
WITHOUT = [f"TRACER without {term}" for term in ("feature", "relational", "interactive", "cross")]
BETAS = [f"TRACER β={beta:g}" for beta in (0.2, 1.0, 1.5)]
SPARSE = [f"TRACER every {every}" for every in (5, 50)]
RELEASED = [f"{name}, released clock" for name in SPARSE]
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
        better_in_all("TRACER", "EMA"),
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
)
