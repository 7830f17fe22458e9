"""The claims that PhotoShift can test, in the words of EmojiShift where it tests the same, and those on frontiers."""

from __future__ import annotations

from collections.abc import Sequence

from studies.emojishift.checks import (
    Arms,
    alike,
    all_of,
    better,
    better_in_all,
    cheap,
    drifting_layers,
    keeps_more,
    lasting_gap,
)
from studies.emojishift.claims import CLAIMS as EMOJI_CLAIMS
from studies.emojishift.further_claims import FURTHER_CLAIMS as EMOJI_FURTHER_CLAIMS
from studies.emojishift.verdict import Claim
from studies.photoshift.frontier import by_trial, larger_area
from studies.photoshift.rows import ZERO_SHOT, PhotoRow
from studies.photoshift.study import ARM_OF, ARMS, CAROT, DRIFT, VARIANTS
from studies.photoshift.tasks import MAIN_TASKS

ONE, CHOSEN, ALL, VARIED = "one setting", "chosen settings", "all settings", "variants"
LAYERS, BESIDE_CAROT = "one setting, layers", "chosen settings, with CaRot"
TRIES = min(len(arm.settings) for arm in ARMS)
SPARSE = ("TRACER every 5", "TRACER every 12")  # of 24 steps
RELEASED = tuple(f"{name}, released clock" for name in SPARSE)


def _emoji(beginning: str) -> str:
    """The text of EmojiShift's first claim that begins so."""
    return _claim(beginning).text


def _claim(beginning: str) -> Claim:
    return next(each for each in (*EMOJI_CLAIMS, *EMOJI_FURTHER_CLAIMS) if each.text.startswith(beginning))


def _varied(beginning: str) -> Claim:
    """EmojiShift's claim on variants of TRACER that begins so."""
    return _claim(beginning)._replace(study=VARIED)


CLAIMS = (
    Claim(
        _emoji("Self-distillation forgets less"),
        CHOSEN,
        ("TRACER", "static", "direct FT"),
        all_of(better("retention", "TRACER", "direct FT"), better("retention", "static", "direct FT")),
    ),
    Claim(
        _emoji("TRACER and a static teacher forget less"),
        CHOSEN,
        ("TRACER", "static", "L2-SP"),
        all_of(better("retention", "TRACER", "L2-SP"), better("retention", "static", "L2-SP")),
    ),
    Claim(_emoji("A WMA teacher keeps a gap"), ONE, ("TRACER", "EMA"), lasting_gap("TRACER", "EMA")),
    Claim(
        _emoji("A WMA teacher is better than a static one"),
        CHOSEN,
        ("TRACER", "static"),
        keeps_more("TRACER", "static"),
    ),
    Claim(
        _emoji("A WMA teacher is better than an EMA teacher"),
        CHOSEN,
        ("TRACER", "EMA"),
        better_in_all("TRACER", "EMA"),
    ),
    Claim(
        _emoji("TRACER improves OOD accuracy"),
        CHOSEN,
        ("TRACER", "FLYP"),
        better("ood", "TRACER", "FLYP"),
    ),
    Claim(
        _emoji("TRACER improves OOD calibration"),
        CHOSEN,
        ("TRACER", "FLYP"),
        better("ece ood", "TRACER", "FLYP"),
    ),
    _varied("FD and CRD are"),
    _varied("All four terms"),
    _varied("A moderate λ"),
    Claim(
        _emoji("The update interval hardly matters (right"),
        VARIED,
        ("TRACER", *SPARSE),
        alike("ood", "TRACER", *SPARSE),
    ),
    Claim(
        _emoji("The update interval hardly matters (released"),
        VARIED,
        ("TRACER", *RELEASED),
        alike("ood", "TRACER", *RELEASED),
    ),
    _varied("β = 0.5 is best"),
    Claim(_emoji("Deeper layers drift"), LAYERS, DRIFT, drifting_layers(*DRIFT)),
    Claim(_emoji("TRACER costs less"), ONE, ("TRACER", "direct FT"), cheap("TRACER", "direct FT", 1.5)),
)
FURTHER_CLAIMS = (
    Claim(
        "TRACER improves OOD accuracy and calibration over CaRot",
        BESIDE_CAROT,
        ("TRACER", "CaRot"),
        all_of(better("ood", "TRACER", "CaRot"), better("ece ood", "TRACER", "CaRot")),
    ),
    Claim(
        "TRACER forgets less than CaRot",
        BESIDE_CAROT,
        ("TRACER", "CaRot"),
        better("retention", "TRACER", "CaRot"),
    ),
    _varied("TRACER is better than an EMA of the same mean age"),
    Claim(
        "At one rate and λ a static teacher learns less than TRACER, and keeps more",
        ONE,
        ("TRACER", "static"),
        all_of(better("id", "TRACER", "static"), better("retention", "static", "TRACER")),
    ),
    Claim(
        "At one rate and λ every teacher keeps more than FLYP",
        ONE,
        ("TRACER", "static", "EMA", "FLYP"),
        all_of(*(better("retention", name, "FLYP") for name in ("TRACER", "static", "EMA"))),
    ),
    Claim(
        "At one rate TRACER is more robust to corruptions than direct finetuning",
        ONE,
        ("TRACER", "direct FT"),
        better("corrupted", "TRACER", "direct FT"),
    ),
    Claim(
        "TRACER's frontier has a larger area than a static teacher's",
        ALL,
        ("TRACER", "static"),
        larger_area("TRACER", "static"),
    ),
    Claim(
        "An EMA teacher with a short memory has a larger area than TRACER and a static teacher",
        ALL,
        ("EMA", "TRACER", "static"),
        larger_area("EMA", "TRACER", "static"),
    ),
    Claim(
        "Teachers have a larger area than direct finetuning with WiSE-FT",
        ALL,
        ("TRACER", "static", "EMA", "direct FT"),
        all_of(*(larger_area(name, "direct FT") for name in ("TRACER", "static", "EMA"))),
    ),
    Claim(
        "Lipsum-FT has a larger area than direct finetuning with WiSE-FT",
        ALL,
        ("Lipsum-FT", "direct FT"),
        larger_area("Lipsum-FT", "direct FT"),
    ),
)


def studies(rows: Sequence[PhotoRow]) -> dict[str, Arms]:
    """The rows of each arm at its first setting, at the chosen one, and at all, where every arm has finished.

    Variants of TRACER are rows of their own, beside TRACER's at its first setting. Layers were not measured in the
    first runs, so that their study has the runs that have them.
    """
    arms = {
        name: [row for row in rows if row.arm == name and row.study in MAIN_TASKS]
        for name in (ZERO_SHOT, *(arm.name for arm in ARMS))
    }
    carot = [row for row in rows if row.arm == CAROT.name]
    varied = {arm.name: [row for row in rows if row.arm == arm.name] for arm in VARIANTS}
    return {
        ONE: complete({name: [row for row in own if is_first(row)] for name, own in arms.items()}),
        CHOSEN: complete({name: chosen(finished(own)) for name, own in arms.items()}),
        ALL: every_setting(arms),
        BESIDE_CAROT: complete(
            {
                name: chosen(finished(own))
                for name, own in {"TRACER": arms["TRACER"], CAROT.name: carot}.items()
            }
        ),
        LAYERS: complete({name: [row for row in arms[name] if row.layers] for name in DRIFT}),
        VARIED: complete({"TRACER": list(filter(is_first, arms["TRACER"])), **varied})
        if any(varied.values())
        else {},
    }


def every_setting(arms: dict[str, list[PhotoRow]]) -> Arms:
    """The rows of arms that have run all their settings, on the trials that all of them have."""
    return complete({name: finished(own) for name, own in arms.items() if name != ZERO_SHOT})


def is_first(row: PhotoRow) -> bool:
    """Whether the run has the setting at which arms are compared without a choice."""
    return row.arm == ZERO_SHOT or (row.rate, row.strength) == tuple(ARM_OF[row.arm].settings[0])


def finished(rows: Sequence[PhotoRow]) -> list[PhotoRow]:
    """The rows of the trials with every setting of the grid, which has three of each arm, or more."""
    trials = by_trial(rows)
    most = max(map(len, trials.values()), default=0)
    whole = most >= TRIES or all(row.arm == ZERO_SHOT for row in rows)
    return [row for own in trials.values() if whole and len(own) == most for row in own]


def chosen(rows: Sequence[PhotoRow]) -> list[PhotoRow]:
    """In each task, the rows of the setting with the highest mean accuracy on held-out pictures; ties: the first."""
    rows_of: dict[int, dict[tuple[float, float | None], list[PhotoRow]]] = {}
    for row in rows:
        rows_of.setdefault(row.fold, {}).setdefault((row.rate, row.strength), []).append(row)
    best = [max(own.values(), key=_held_out) for own in rows_of.values()]
    return [row for own in best for row in own]


def _held_out(rows: Sequence[PhotoRow]) -> float:
    return sum(row.validation for row in rows) / len(rows)


def complete(arms: dict[str, list[PhotoRow]]) -> Arms:
    """The trials that every arm has that was run at all, sorted; none of a study in which no arm was run."""
    run = {name: own for name, own in arms.items() if own}
    if not run.keys() - {ZERO_SHOT}:
        return {}
    common = set.intersection(*({(row.fold, row.seed) for row in own} for own in run.values()))
    return {
        name: sorted(
            (row for row in own if (row.fold, row.seed) in common), key=lambda row: (row.fold, row.seed)
        )
        for name, own in run.items()
    }
