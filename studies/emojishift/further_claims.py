"""Claims that the paper does not make but users ask about, each with the comparisons that test it."""

from __future__ import annotations

from studies.emojishift.checks import all_of, at_equal_task, better, better_in_all, keeps_more, no_worse
from studies.emojishift.study import ZERO_SHOT
from studies.emojishift.verdict import Claim

SPRINGS = ["L2-SP", *(f"L2-SP λ={strength:g}" for strength in (0.1, 1.0, 10.0))]
MATCHED = "EMA of matched age"
STIFF = ("static λ=10", "L2-SP λ=1")
LOOSE = ["static", *(f"static λ={strength:g}" for strength in (0.03, 0.1, 0.3))]

FURTHER_CLAIMS = (
    Claim(
        "TRACER forgets less than L2-SP, whatever its λ, and learns as much (within one point)",
        "strengths",
        ("TRACER", *SPRINGS),
        keeps_more("TRACER", *SPRINGS, measures=("retention",)),
    ),
    Claim(
        "TRACER is better than an EMA of the same mean age, on the task, OOD and in retention",
        "variants",
        ("TRACER", MATCHED),
        better_in_all("TRACER", MATCHED),
    ),
    Claim(
        "Finetuning learns the task: more than zero-shot on ID",
        "main",
        (ZERO_SHOT.name, "direct FT", "FLYP", "TRACER"),
        all_of(*(better("id", arm, ZERO_SHOT.name) for arm in ("direct FT", "FLYP", "TRACER"))),
    ),
    Claim(
        "The same where the pretrained model is weak on the task",
        "weak",
        (ZERO_SHOT.name, "FLYP", "TRACER"),
        all_of(*(better("id", arm, ZERO_SHOT.name) for arm in ("FLYP", "TRACER"))),
    ),
    Claim(
        "TRACER costs no OOD accuracy against zero-shot (within one point)",
        "main",
        (ZERO_SHOT.name, "TRACER"),
        no_worse("ood", "TRACER", ZERO_SHOT.name, condition=False),
    ),
    Claim(
        "TRACER is better than mixing weights (WiSE-FT, α = 0.5) after direct finetuning or FLYP",
        "main",
        ("TRACER", "direct FT", "FLYP"),
        better_in_all("TRACER", "direct FT", "FLYP", other_alpha=0.5),
    ),
    Claim(
        "Where the pretrained model is weak on the task, TRACER is better than a static teacher in all three",
        "weak",
        ("TRACER", "static"),
        better_in_all("TRACER", "static"),
    ),
    Claim(
        "There it keeps more than a static teacher whose λ lets it learn as much (within two points)",
        "weak strengths",
        ("TRACER", *LOOSE),
        at_equal_task("TRACER", LOOSE, "ood", "retention"),
    ),
    Claim(
        "There Lipsum-FT keeps more with a moving teacher than with its frozen one, and learns as much",
        "weak others",
        ("lipsum WMA", "lipsum"),
        keeps_more("lipsum WMA", "lipsum"),
    ),
    Claim(
        "There a head that is probed first (LP-FT) keeps more than Lipsum-FT, and learns as much",
        "weak others",
        ("lpft", "lipsum"),
        keeps_more("lpft", "lipsum"),
    ),
    Claim(
        "With λ chosen beside the rate, TRACER improves OOD accuracy over FLYP and CaRot",
        "chosen λ",
        ("TRACER", "FLYP", "CaRot"),
        better("ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "With λ chosen beside the rate, TRACER keeps more than a static teacher and L2-SP, and learns as much",
        "chosen λ",
        ("TRACER", "static", "L2-SP"),
        keeps_more("TRACER", "static", "L2-SP"),
    ),
    Claim(
        "TRACER improves OOD accuracy over FLYP and CaRot with another trained style",
        "second style",
        ("TRACER", "FLYP", "CaRot"),
        better("ood", "TRACER", "FLYP", "CaRot"),
    ),
    Claim(
        "The same, with TRACER at the rate that the others chose",
        "second style",
        ("TRACER at 0.001", "FLYP", "CaRot"),
        better("ood", "TRACER at 0.001", "FLYP", "CaRot"),
    ),
    Claim(
        "TRACER is better than direct finetuning, FLYP and CaRot on corrupted pictures",
        "main",
        ("TRACER", "direct FT", "FLYP", "CaRot"),
        better("corrupted", "TRACER", "direct FT", "FLYP", "CaRot"),
    ),
    Claim(
        "On folds that did not choose it `steady` (no ICL, λ = 10) keeps more OOD than TRACER and learns as much",
        "fresh folds",
        ("steady", "TRACER"),
        keeps_more("steady", "TRACER", measures=("ood",)),
    ),
    Claim(
        "The same against the static teacher",
        "fresh folds",
        ("steady", "static"),
        keeps_more("steady", "static", measures=("ood",)),
    ),
    Claim(
        "The same against what else is stiff: a static teacher at λ = 10, and L2-SP at λ = 1",
        "fresh folds",
        ("steady", "static λ=10", "L2-SP λ=1"),
        keeps_more("steady", *STIFF, measures=("ood",)),
    ),
    Claim(
        "There it learns more than zero-shot, and costs no OOD accuracy (within one point)",
        "fresh folds",
        ("steady", ZERO_SHOT.name),
        all_of(
            better("id", "steady", ZERO_SHOT.name),
            no_worse("ood", "steady", ZERO_SHOT.name, condition=False),
        ),
    ),
    Claim(
        "Lipsum-FT keeps more OOD than `steady` there, and learns as much",
        "fresh folds",
        ("lipsum", "steady"),
        keeps_more("lipsum", "steady", measures=("ood",)),
    ),
    Claim(
        "Over three pretrained models Lipsum-FT keeps more than TRACER, and learns as much",
        "three starts",
        ("lipsum", "TRACER"),
        keeps_more("lipsum", "TRACER"),
    ),
    Claim(
        "The same where the pretrained model is weak on the task, for Lipsum-FT",
        "weak",
        ("lipsum", "TRACER"),
        keeps_more("lipsum", "TRACER"),
    ),
    Claim(
        "Over three pretrained models `steady` keeps more than TRACER, and learns as much",
        "three starts",
        ("steady", "TRACER"),
        keeps_more("steady", "TRACER"),
    ),
    Claim(
        "The same where the pretrained model is weak on the task, for `steady`",
        "weak",
        ("steady", "TRACER"),
        keeps_more("steady", "TRACER"),
    ),
    Claim(
        "TRACER keeps more than FLYP over three pretrained models, on OOD and in retention",
        "three starts",
        ("TRACER", "FLYP"),
        all_of(better("ood", "TRACER", "FLYP"), better("retention", "TRACER", "FLYP")),
    ),
    Claim(
        "Over three pretrained models TRACER is better than a static teacher on the task, OOD and in retention",
        "three starts",
        ("TRACER", "static"),
        better_in_all("TRACER", "static"),
    ),
)
