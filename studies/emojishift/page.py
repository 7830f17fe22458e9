"""The pages docs/evidence.md and docs/evidence-studies.md, written from a result file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from studies.emojishift.checks import Arms, Comparison, remaining_gap
from studies.emojishift.claims import CLAIMS
from studies.emojishift.compare import per_style, value
from studies.emojishift.further_claims import FURTHER_CLAIMS
from studies.emojishift.rows import Measure, Role, Row
from studies.emojishift.study import ZERO_SHOT
from studies.emojishift.verdict import Claim, claim_comparisons, grouped, verdict
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval
from tracer.data.embedded.emojishift import styles

INTRODUCTION = """
# Evidence

Each claim of the paper, tried on [EmojiShift](emojishift.md): a CLIP of 5.8 M parameters, pretrained on the names of
emoji, is finetuned to tell their kinds in one art style. ID are unseen emoji in that style, OOD unseen emoji in eleven
other styles (mean over styles), corrupted the ID pictures under noise, blur, JPEG, light and pixels (mean over eight
kinds, severity 3 of 5), retention is the naming task of pretraining (top-1 of 1 379 names). This page is written by
`tracer evidence` from result files alone: its own, and for the first table that of [PhotoShift](photoshift.md). What
it means for a choice: [Which to use](methods.md#which-to-use).

"Unseen" means unseen in finetuning: pretraining has seen nearly every emoji drawn by another artist, with its name
and, in the strong regime, its kind. It has seen no test image, nor a drawing of the same family.

Limits: the model is small, its pretraining is narrow and short, images have 32 pixels, and one run has a few hundred
images. A claim that is not seen here may hold at the size of CLIP, and the other way round.
"""

READING = """
A comparison supports a claim (✓) if its whole interval lies above zero, contradicts it (✗) if
the interval lies below, and is inconclusive (·) otherwise. *Holds* means that all comparisons support the claim, *holds
partly* that some do, *not seen here* that none does, with a note where some contradict it; *not tested yet* that the
runs have not been made. A precondition of a claim (written `1% + A − B`: A is at most a point behind B) must hold too,
and is no support by itself. An interval is a 95 % bootstrap over emoji, paired where two arms are compared; several
comparisons of one claim are not corrected for their number. Where a study has several seeds for a fold, the interval
includes the spread between them; where it has one, the effect of another seed is in no interval. Nor is, anywhere, the
effect of another pretrained model: in *three starts* and *weak* each fold starts from another one. Where it is marked
so, an interval is the smallest and largest value over the runs, which is no test. ECE OOD is that of an even mixture of
the styles, in 15 bins; ECE is biased upward on few images, so that a small one says little, and differences of small
ones are understated.

The learning rate of each arm was chosen from equally many, by accuracy on emoji that are not tested (the runs that
choose do train on some that are, and all start from the first pretrained model); an arm marked ° took the rate of the
arm that it varies, or a fixed one. In the study *chosen λ*, λ was chosen together with the rate, from nine pairs for
each arm, and is shown beside it; methods without λ tried nine rates. Elsewhere λ and all other options are the methods'
defaults unless the arm's name says otherwise. α is WiSE-FT: the share of the finetuned weights in a mixture with the
pretrained ones.

Every run used one thread. With `OMP_NUM_THREADS=1`, its commit and the same machine, its command repeats it to the bit,
and `tracer eval RUN --suite emojishift --corrupt all:3 --device cpu` its scores (those of a mixture after
`tracer merge RUN --wise 0.5 --device cpu`). What this means for users is in [EmojiShift](emojishift.md#what-came-out);
terms, λ, interval and β were also varied [on digits](ablations.md), and the controlled experiment, whose shift
exchanges two colours, is the [toy study](toy.md).
"""

FIGURE = Path("figures") / "emojishift.svg"  # beside the page
PICTURE = f"""![Task against OOD accuracy and retention, along the mixtures of WiSE-FT and along λ]({FIGURE})

*Task accuracy against OOD accuracy and retention of each arm; up and to the right is better.*"""

Chosen = Literal["rate", "strength"]
NAMED: dict[Chosen, str] = {"rate": "rate", "strength": "λ"}
COLUMNS: dict[str, Measure] = {
    "ID": "id",
    "OOD": "ood",
    "corrupted": "corrupted",
    "retention": "retention",
    "ECE ID": "ece id",
    "ECE OOD": "ece ood",
}

NOT_COMPARED = (
    "CaRot has fewer seeds on PhotoShift: where a claim names it, its verdict there rests on the other arms alone, and "
    "[PhotoShift](photoshift.md#verdicts) compares it with TRACER in claims of its own."
)


def overview(arms: Arms, searched: Collection[str]) -> str:
    """Every arm and its mixtures: task, shift, retention and calibration, in %, with 95 % intervals."""
    lines = [
        [label, *(percent(value(rows, measure, alpha)) for measure in COLUMNS.values()), rate, seconds]
        for label, rows, alpha, rate, seconds in entries(arms, searched)
    ]
    return markdown_table(("arm", *COLUMNS, "learning rate", "CPU s a run"), lines)


def entries(arms: Arms, searched: Collection[str]) -> Iterator[tuple[str, Sequence[Row], float, str, str]]:
    """Each arm, then every α that was measured for all its runs; ° marks a rate that the arm did not search itself."""
    for name, rows in arms.items():
        times = [row.cpu_seconds for row in rows if row.cpu_seconds]
        rate = ", ".join(sorted({setting(row) for row in rows}))
        trained = name != ZERO_SHOT.name
        rate += "" if name in searched else "°"
        yield name, rows, 1.0, rate if trained else "", f"{np.mean(times):.0f}" if times and trained else ""
        # The α that all runs have: one that another study shares may have more.
        mixed = set.intersection(*(set(row.scores) for row in rows)) - {"1"}
        for alpha in sorted(map(float, mixed), reverse=True):
            yield f"{name}, α = {alpha:g}", rows, alpha, "", ""


def setting(row: Row) -> str:
    """The learning rate of a run, and λ where its arm chose it."""
    return f"{row.rate:g}" + ("" if row.strength is None else f" at λ = {row.strength:g}")


def edges(rows: Sequence[Row], study: str) -> str:
    """A sentence that names the arms whose chosen rate or λ is the lowest or highest one tried; empty if none is."""
    at_edge: dict[str, list[str]] = {}
    for of, name in NAMED.items():
        tried, taken = values(rows, study, "search", of), values(rows, study, "test", of)
        for arm, each in tried.items():
            for edge, end in (("lowest", min(each)), ("highest", max(each))):
                if len(each) > 1 and end in taken.get(arm, ()):
                    at_edge.setdefault(f"the {edge} {name} tried ({end:g})", []).append(arm)
    sentences = "; ".join(f"{edge} was chosen by {', '.join(arms)}" for edge, arms in at_edge.items())
    return f"At an edge: {sentences}. A better value may lie beyond." if sentences else ""


def searched(rows: Sequence[Row], study: str) -> Collection[str]:
    """The arms of a study that searched their own rate."""
    return values(rows, study, "search", "rate").keys()


def values(rows: Sequence[Row], study: str, role: Role, of: Chosen) -> dict[str, set[float]]:
    """The rates, or the λ that were chosen among several, of each arm's runs in one role."""
    by_arm: dict[str, set[float]] = {}
    for row in rows:
        value = getattr(row, of)
        if row.study == study and row.role == role and value is not None:
            by_arm.setdefault(row.arm, set()).add(value)
    return by_arm


def by_style(arms: Arms) -> str:
    """Accuracy in each style, in %."""
    lines = []
    for name, rows in arms.items():
        accuracy = per_style(rows)
        lines.append([name, *(f"{100 * accuracy[style]:.1f}" for style in styles())])
    return markdown_table(("arm", *styles()), lines)


def teachers(arms: Arms) -> str:
    """The teacher–student KL at the end of each run, in % of its maximum."""
    taught = {name: rows for name, rows in arms.items() if rows[0].gap.get("kl")}
    lines = [
        [
            name,
            *(f"{100 * remaining_gap(row):.0f}" for row in rows),
            f"{np.mean([row.gap['kl'][-1] for row in rows]):.4f}",
        ]
        for name, rows in taught.items()
    ]
    runs = [f"fold {row.fold}, seed {row.seed}" for row in next(iter(taught.values()))] if taught else []
    return markdown_table(("arm", *runs, "KL at the last step"), lines)


def short_verdicts(studies: Mapping[str, Arms], claims: Sequence[Claim]) -> str:
    """Each claim with its verdict alone."""
    lines = [[claim.text, f"*{verdict(claim_comparisons(claim, studies), claim.best)}*"] for claim in claims]
    return markdown_table(("claim", "verdict"), lines)


def verdict_table(studies: Mapping[str, Arms], claims: Sequence[Claim]) -> str:
    """Each claim with its comparisons, the study that has them, and its verdict."""
    lines = []
    for claim in claims:
        parts = claim_comparisons(claim, studies)
        cell = "<br>".join(map(sentence, parts))
        runs = sum(len(studies[claim.study][name]) for name in claim.needs) if parts else 0
        source = f"{claim.study}, {runs} runs" if parts else ""
        lines.append([claim.text, cell, source, f"*{verdict(parts, claim.best)}*"])
    return markdown_table(("claim", "what was found", "study", "verdict"), lines)


def sentence(part: Comparison) -> str:
    """A comparison with its interval, and whether it supports the claim; a range over runs is marked."""
    low, middle, high = (100 * each if part.percent else each for each in part.interval)
    digits = 1 if part.percent else 2
    how = "" if part.bootstrapped else " (range over runs)"
    mark = {"for": "✓", "against": "✗", "neither": "·"}[part.speaks]
    return f"{mark} {part.label}: {middle:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]{how}"


def runs(rows: Sequence[Row]) -> str:
    """A table of all runs with their commands."""
    lines = [
        [
            each.study,
            each.arm,
            each.role,
            str(each.fold),
            str(each.seed),
            f"`{each.run}`",
            f"`{each.commit[:10]}`" if each.commit else "",
            f"`{each.command}`",
        ]
        for each in rows
    ]
    return markdown_table(("study", "arm", "role", "fold", "seed", "run", "commit", "command"), lines)


def percent(interval: Interval) -> str:
    """An interval in per cent: the value, and its ends in brackets."""
    low, middle, high = (100 * each for each in interval)
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def page(
    head: dict[str, Any], rows: Sequence[Row], studies: str, intro: str = INTRODUCTION, both: str = ""
) -> str:
    """The page of the verdicts; `studies` is the file beside it that holds every arm and run.

    `both` is the table of the verdicts on this benchmark and on PhotoShift.
    """
    arms = grouped(rows)
    link = f"Every comparison with its interval, every arm by style, and every run: [Studies and runs]({studies})."
    compared = (
        ("## Both benchmarks", NOT_COMPARED, both) if both else ("## Verdicts", short_verdicts(arms, CLAIMS))
    )
    parts = [intro.strip(), f"{link} {_source(head)}", *compared, PICTURE]
    parts += [
        "## Further claims",
        short_verdicts(arms, FURTHER_CLAIMS),
        "## How to read a verdict",
        READING.strip(),
    ]
    return "\n\n".join(parts) + "\n"


def studies_page(head: dict[str, Any], rows: Sequence[Row], verdicts: str) -> str:
    """The page of every study and run; `verdicts` is the file beside it that draws the conclusions."""
    how = f"[How to read a verdict]({verdicts}#how-to-read-a-verdict)"
    parts = ["# Studies and runs", f"What [the verdicts]({verdicts}) rest on. {how}. {_source(head)}"]
    parts += ["## Verdicts", verdict_table(grouped(rows), CLAIMS)]
    parts += ["## Further claims", verdict_table(grouped(rows), FURTHER_CLAIMS)]
    for study, arms in grouped(rows).items():
        parts += [
            f"## Study: {study}",
            overview(arms, searched(rows, study)),
            edges(rows, study),
            "Accuracy by style:",
            by_style(arms),
        ]
        if any(runs[0].gap.get("kl") for runs in arms.values()):
            heading = (
                "Divergence between teacher and student in the last tenth of training, in % of its peak:"
            )
            parts += [heading, teachers(arms)]
    parts += ["## Runs", f"<details><summary>{len(rows)} runs</summary>\n\n{runs(rows)}\n\n</details>"]
    return "\n\n".join(filter(None, parts)) + "\n"


def _source(head: dict[str, Any]) -> str:
    commit = f", commit `{head['commit'][:10]}`" if "commit" in head else ""
    return f"Put together by `{head['command']}` on {head['date']} with torch {head['versions']['torch']}{commit}."
