"""The page of verdicts: tables and claims, written from result files and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tracer.data.emojishift import styles
from tracer.evidence.claims import CLAIMS, grouped, looked, verdict
from tracer.evidence.compare import Measure, per_style, value
from tracer.evidence.looks import Arms, Part, left
from tracer.evidence.results import Row
from tracer.metrics import Interval

INTRODUCTION = """
# Evidence

Each claim of the paper, tried on [EmojiShift](emojishift.md): a CLIP of 5.8 M parameters, pretrained on the names of
emoji, is finetuned to tell their kinds in one art style. ID are unseen emoji in that style, OOD unseen emoji in eleven
other styles (mean over styles), corrupted the ID pictures under noise, blur, JPEG, light and pixels (mean over eight
kinds, severity 3 of 5), retention is the naming task of pretraining (top-1 of 1 379 names). This page is written by
`tracer evidence` from its result file and says nothing that the file does not hold.

How to read a verdict: *holds* means that every comparison lies above zero with its whole interval, *holds partly*
that some do, *not seen here* that none does, *not tested yet* that the runs have not been made. An interval is a 95 %
bootstrap over emoji, paired where two arms are compared; where it is marked so, it is the smallest and largest value
over the runs, which is no test. Each fold is run with a seed of its own, and what another seed would change is in no
interval. ECE is too large on few images; its interval makes up for that, so that the value may lie at its upper end.
Learning rates were chosen for each arm from equally many, by validation accuracy on emoji that are not tested; λ and
all other options are the methods' defaults where no arm says otherwise. α is WiSE-FT: the share of the finetuned
weights in a mixture with the pretrained ones.

Every run used one thread; with `OMP_NUM_THREADS=1`, the same commit and the same machine its command gives the same
bits again. What follows from it for users stands in [EmojiShift](emojishift.md#what-came-out); terms, λ, interval and
β were also varied [on digits](ablations.md), and the controlled experiment is the [toy study](toy.md).

What it cannot tell: the model is small, its pretraining is narrow and short, images have 32 pixels, and one run has a
few hundred images. A claim that is not seen here may hold at the size of CLIP, and the other way round.
"""

FIGURE = Path("figures") / "emojishift.svg"  # beside the page
PICTURE = f"""![Task against OOD accuracy and retention, along the mixtures of WiSE-FT and along λ]({FIGURE})

*What each arm learns and what it keeps; up and to the right is better.*"""

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


def overview(arms: Arms) -> str:
    """Every arm and its mixtures: task, shift, retention and calibration, in %, with 95 % intervals over emoji."""
    lines = [
        [told, *(percent(value(rows, measure, alpha)) for measure in COLUMNS.values()), rate, seconds]
        for told, rows, alpha, rate, seconds in entries(arms)
    ]
    return markdown(("arm", *COLUMNS, "learning rate", "CPU s a run"), lines)


def entries(arms: Arms) -> Iterator[tuple[str, Sequence[Row], float, str, str]]:
    """Each arm, and below it every α that was measured."""
    for name, rows in arms.items():
        times = [row.cpu_seconds for row in rows if row.cpu_seconds]
        rate = ", ".join(f"{each:g}" for each in sorted({row.rate for row in rows}))
        trained = len(rows[0].gap.get("weight_step", ())) or rows[0].scores.keys() != {"1"}
        yield name, rows, 1.0, rate if trained else "", f"{np.mean(times):.0f}" if times and trained else ""
        for alpha in sorted((float(each) for each in rows[0].scores if each != "1"), reverse=True):
            yield f"{name}, α = {alpha:g}", rows, alpha, "", ""


def edges(rows: Sequence[Row], study: str) -> str:
    """Which arms chose the lowest or the highest rate that was tried, beyond which a better one may lie."""
    tried: dict[str, set[float]] = {}
    for row in rows:
        if row.study == study and row.role == "search":
            tried.setdefault(row.arm, set()).add(row.rate)
    taken = {row.arm: row.rate for row in rows if row.study == study and row.role == "test"}
    least = [arm for arm, rates in tried.items() if len(rates) > 1 and taken.get(arm) == min(rates)]
    most = [arm for arm, rates in tried.items() if len(rates) > 1 and taken.get(arm) == max(rates)]
    told = [
        f"the {name} of the rates tried ({rate:g}) was chosen by {', '.join(arms)}"
        for name, arms, pick in (("lowest", least, min), ("highest", most, max))
        if arms and (rate := pick(tried[arms[0]]))
    ]
    return f"At an edge: {'; '.join(told)}. A better rate may lie beyond." if told else ""


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


def verdicts(rows: Sequence[Row]) -> str:
    """One line a claim."""
    studies = grouped(rows)
    lines = []
    for claim in CLAIMS:
        parts = looked(claim, studies)
        told = "<br>".join(map(sentence, parts))
        runs = sum(len(studies[claim.study][name]) for name in claim.needs) if parts else 0
        lines.append(
            [claim.text, told, f"{claim.study}, {runs} runs" if parts else "", f"*{verdict(parts)}*"]
        )
    return markdown(("claim", "what was found", "study", "verdict"), lines)


def sentence(part: Part) -> str:
    """A comparison with its interval; a range over runs says so."""
    low, found, high = (100 * each if part.percent else each for each in part.found)
    digits = 1 if part.percent else 2
    how = "" if part.paired else " (range over runs)"
    return f"{part.label}: {found:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]{how}"


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
            f"`{each.command}`",
        ]
        for each in rows
    ]
    return markdown(("study", "arm", "role", "fold", "seed", "run", "command"), lines)


def percent(found: Interval) -> str:
    """An interval in per cent: the value, and its ends in brackets."""
    low, middle, high = (100 * each for each in found)
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def page(head: dict[str, Any], rows: Sequence[Row], intro: str = INTRODUCTION) -> str:
    """The whole page."""
    parts = [intro.strip(), "## Verdicts", verdicts(rows), PICTURE]
    for study, arms in grouped(rows).items():
        parts += [
            f"## Study: {study}",
            overview(arms),
            edges(rows, study),
            "Accuracy by style:",
            by_style(arms),
        ]
        if any(found[0].gap.get("kl") for found in arms.values()):
            parts += [
                "Divergence between teacher and student in the last tenth of training, in % of its peak:"
            ]
            parts += [teachers(arms)]
    told = f"Made by `{head['command']}` on {head['date']} with torch {head['versions']['torch']}."
    parts += ["## Runs", told, f"<details><summary>{len(rows)} runs</summary>\n\n{runs(rows)}\n\n</details>"]
    return "\n\n".join(filter(None, parts)) + "\n"
