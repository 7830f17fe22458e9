"""The page of verdicts: tables and claims, written from result files and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from studies.emojishift.claims import CLAIMS
from studies.emojishift.compare import Measure, per_style, value
from studies.emojishift.looks import Arms, Part, left
from studies.emojishift.questions import QUESTIONS
from studies.emojishift.rows import Role, Row
from studies.emojishift.study import ZERO_SHOT
from studies.emojishift.verdict import Claim, grouped, looked, verdict
from tracer.core.metrics import Interval
from tracer.data.emojishift import styles

INTRODUCTION = """
# Evidence

Each claim of the paper, tried on [EmojiShift](emojishift.md): a CLIP of 5.8 M parameters, pretrained on the names of
emoji, is finetuned to tell their kinds in one art style. ID are unseen emoji in that style, OOD unseen emoji in eleven
other styles (mean over styles), corrupted the ID pictures under noise, blur, JPEG, light and pixels (mean over eight
kinds, severity 3 of 5), retention is the naming task of pretraining (top-1 of 1 379 names). This page is written by
`tracer evidence` from its result file and says nothing that the file does not hold.

"Unseen" means unseen in finetuning: pretraining has seen nearly every emoji in another artist's hand, with its name
and, in the strong regime, its kind. It has seen no picture that is tested, nor a sister drawing of one.

How to read a verdict: a comparison speaks for a claim (✓) if it lies above zero with its whole interval, against it
(✗) if it lies below, and says nothing (·) otherwise. *Holds* means that all speak for it, *holds partly* that some do,
*not seen here* that none does, with a word added where some speak against it; *not tested yet* that the runs have not
been made. What a claim only presupposes (written `1% + A − B`: A is at most a point behind B) must hold too, and is no
support by itself. An interval is a 95 % bootstrap over emoji, paired where two arms are compared; several comparisons
of one claim are not corrected for their number. Where a study has several seeds for a fold, the spread between them is
in the interval too; where it has one, what another seed would change is in no interval. Nor is, anywhere, what another
pretrained model would change: in *three starts* and *weak* each fold begins with another one. Where it is marked so, an
interval is the smallest and largest value over the runs, which is no test. ECE OOD is that of an even mixture of the
styles, in 15 bins; ECE is too large on few pictures, so that a small one says little, and differences of small ones are
understated.

Learning rates were chosen for each arm from equally many, by accuracy on emoji that are not tested (the runs that
choose do train on some that are, and all begin with the first pretrained model); an arm marked ° took the rate of the
arm that it varies, or one that it was given. In the study *chosen λ*, λ was chosen together with the rate,
from nine pairs an arm, and stands beside it; methods without λ tried nine rates. Elsewhere λ and all other options are
the methods' defaults where no arm says otherwise. α is WiSE-FT: the share of the finetuned weights in a mixture with
the pretrained ones.

Every run used one thread; with `OMP_NUM_THREADS=1`, its commit and the same machine its command gives the same bits
again, and `tracer eval RUN --suite emojishift --corrupt all:3 --device cpu` its scores (those of a mixture after
`tracer merge RUN --wise 0.5 --device cpu`). What follows from it for users stands in
[EmojiShift](emojishift.md#what-came-out); terms, λ, interval and β were also varied [on digits](ablations.md), and the
controlled experiment, with a shift of its own (colours the other way round), is the [toy study](toy.md).

What it cannot tell: the model is small, its pretraining is narrow and short, images have 32 pixels, and one run has a
few hundred images. A claim that is not seen here may hold at the size of CLIP, and the other way round.
"""

FIGURE = Path("figures") / "emojishift.svg"  # beside the page
PICTURE = f"""![Task against OOD accuracy and retention, along the mixtures of WiSE-FT and along λ]({FIGURE})

*What each arm learns and what it keeps; up and to the right is better.*"""

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


def markdown(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table as Markdown, numbers flush right."""
    rule = ["---", *("--:" for _ in columns[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, rule, *lines))


def overview(arms: Arms, searched: Collection[str]) -> str:
    """Every arm and its mixtures: task, shift, retention and calibration, in %, with 95 % intervals."""
    lines = [
        [told, *(percent(value(rows, measure, alpha)) for measure in COLUMNS.values()), rate, seconds]
        for told, rows, alpha, rate, seconds in entries(arms, searched)
    ]
    return markdown(("arm", *COLUMNS, "learning rate", "CPU s a run"), lines)


def entries(arms: Arms, searched: Collection[str]) -> Iterator[tuple[str, Sequence[Row], float, str, str]]:
    """Each arm, and below it every α that was measured; a rate that the arm did not search itself is marked."""
    for name, rows in arms.items():
        times = [row.cpu_seconds for row in rows if row.cpu_seconds]
        rate = ", ".join(sorted({setting(row) for row in rows}))
        trained = name != ZERO_SHOT.name
        rate += "" if name in searched else "°"
        yield name, rows, 1.0, rate if trained else "", f"{np.mean(times):.0f}" if times and trained else ""
        mixed = set.intersection(*(set(row.scores) for row in rows)) - {"1"}  # some runs serve two studies
        for alpha in sorted(map(float, mixed), reverse=True):
            yield f"{name}, α = {alpha:g}", rows, alpha, "", ""


def setting(row: Row) -> str:
    """The learning rate of a run, and λ where its arm chose it."""
    return f"{row.rate:g}" + ("" if row.strength is None else f" at λ = {row.strength:g}")


def edges(rows: Sequence[Row], study: str) -> str:
    """Which arms chose the least or the most that was tried of something, beyond which a better value may lie."""
    found: dict[str, list[str]] = {}
    for of, name in NAMED.items():
        tried, taken = values(rows, study, "search", of), values(rows, study, "test", of)
        for arm, each in tried.items():
            for edge, end in (("lowest", min(each)), ("highest", max(each))):
                if len(each) > 1 and end in taken.get(arm, ()):
                    found.setdefault(f"the {edge} {name} tried ({end:g})", []).append(arm)
    told = "; ".join(f"{edge} was chosen by {', '.join(arms)}" for edge, arms in found.items())
    return f"At an edge: {told}. A better value may lie beyond." if told else ""


def searched(rows: Sequence[Row], study: str) -> Collection[str]:
    """The arms of a study that searched their own rate."""
    return values(rows, study, "search", "rate").keys()


def values(rows: Sequence[Row], study: str, role: Role, of: Chosen) -> dict[str, set[float]]:
    """The rates, or the λ that were chosen among several, of each arm's runs in one role."""
    found: dict[str, set[float]] = {}
    for row in rows:
        one = getattr(row, of)
        if row.study == study and row.role == role and one is not None:
            found.setdefault(row.arm, set()).add(one)
    return found


def by_style(arms: Arms) -> str:
    """Accuracy in each style, in %."""
    lines = []
    for name, rows in arms.items():
        found = per_style(rows)
        lines.append([name, *(f"{100 * found[style]:.1f}" for style in styles())])
    return markdown(("arm", *styles()), lines)


def teachers(arms: Arms) -> str:
    """How much of the largest divergence from the teacher is left at the end of each run, in %."""
    taught = {name: rows for name, rows in arms.items() if rows[0].gap.get("kl")}
    lines = [
        [
            name,
            *(f"{100 * left(row):.0f}" for row in rows),
            f"{np.mean([row.gap['kl'][-1] for row in rows]):.4f}",
        ]
        for name, rows in taught.items()
    ]
    runs = [f"fold {row.fold}, seed {row.seed}" for row in next(iter(taught.values()))] if taught else []
    return markdown(("arm", *runs, "KL at the last step"), lines)


def verdicts(rows: Sequence[Row], claims: Sequence[Claim]) -> str:
    """One line a claim."""
    studies = grouped(rows)
    lines = []
    for claim in claims:
        parts = looked(claim, studies)
        told = "<br>".join(map(sentence, parts))
        runs = sum(len(studies[claim.study][name]) for name in claim.needs) if parts else 0
        made = f"{claim.study}, {runs} runs" if parts else ""
        lines.append([claim.text, told, made, f"*{verdict(parts, claim.best)}*"])
    return markdown(("claim", "what was found", "study", "verdict"), lines)


def sentence(part: Part) -> str:
    """A comparison with its interval, and whether it speaks for the claim; a range over runs says so."""
    low, found, high = (100 * each if part.percent else each for each in part.found)
    digits = 1 if part.percent else 2
    how = "" if part.bootstrapped else " (range over runs)"
    mark = {"for": "✓", "against": "✗", "neither": "·"}[part.speaks]
    return f"{mark} {part.label}: {found:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]{how}"


def runs(rows: Sequence[Row]) -> str:
    """The run and the command of every number."""
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
    return markdown(("study", "arm", "role", "fold", "seed", "run", "commit", "command"), lines)


def percent(found: Interval) -> str:
    """An interval in per cent: the value, and its ends in brackets."""
    low, middle, high = (100 * each for each in found)
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def page(head: dict[str, Any], rows: Sequence[Row], intro: str = INTRODUCTION) -> str:
    """The whole page."""
    parts = [intro.strip(), "## Verdicts", verdicts(rows, CLAIMS)]
    parts += ["## Questions of our own", verdicts(rows, QUESTIONS), PICTURE]
    for study, arms in grouped(rows).items():
        parts += [
            f"## Study: {study}",
            overview(arms, searched(rows, study)),
            edges(rows, study),
            "Accuracy by style:",
            by_style(arms),
        ]
        if any(found[0].gap.get("kl") for found in arms.values()):
            parts += [
                "Divergence between teacher and student in the last tenth of training, in % of its peak:"
            ]
            parts += [teachers(arms)]
    commit = f", commit `{head['commit'][:10]}`" if "commit" in head else ""
    told = f"Put together by `{head['command']}` on {head['date']} with torch {head['versions']['torch']}{commit}."
    parts += ["## Runs", told, f"<details><summary>{len(rows)} runs</summary>\n\n{runs(rows)}\n\n</details>"]
    return "\n\n".join(filter(None, parts)) + "\n"
