"""The page docs/photoshift.md, and the table of verdicts on both benchmarks, from their result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.emojishift.checks import Arms
from studies.emojishift.compare import value
from studies.emojishift.page import percent, verdict_table
from studies.emojishift.rows import Measure
from studies.emojishift.verdict import Claim, claim_comparisons, verdict
from studies.photoshift.claims import ALL, CHOSEN, CLAIMS, FURTHER_CLAIMS, ONE, studies
from studies.photoshift.frontier import area_difference, area_of, trial_areas
from studies.photoshift.rows import ZERO_SHOT, PhotoRow
from studies.photoshift.study import SCALES, jobs
from studies.photoshift.tasks import TASKS
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval

FIGURE = Path("figures") / "photoshift.svg"  # beside the page
COLUMNS: dict[str, Measure] = {
    "task": "id",
    "drawings and emoji": "ood",
    "corrupted": "corrupted",
    "kept": "retention",
    "ECE": "ece id",
}
INTRODUCTION = """
# PhotoShift

The paper's claims on pretrained towers and real photographs. EfficientNet-Lite0 (ImageNet) and MiniLM-L6, both from
package registries, become a zero-shot model by a projection from the rows of the ImageNet classifier to the embeddings
of its class names; no image is used. Its image tower is finetuned, at 64 pixels, on a few hundred pictures, and tested
on what it learned, on drawings and emoji of the same things, on corrupted pictures, and on what it should keep. How it
is done, and the rules that were fixed before: [`studies/photoshift`](../studies/photoshift). This page is written by
`python -m studies.photoshift page` from [the result file](../studies/photoshift/results), which has every answer of
every run with its command and commit.
"""
READING = """
A claim needs three runs of each arm for a verdict. An interval is 95 %, over pictures (an emoji in all its styles is
one) and seeds, paired where two arms are compared; with two seeds its seed part is coarse, with one it is absent. ✓
supports a claim, ✗ contradicts it, · does neither; [Evidence](evidence.md) says how a verdict is made of them, and has
those of both benchmarks side by side. *One setting* is rate 3e-4 and λ = 0.9 for the three teachers; *chosen settings*
are those of highest accuracy on held-out training pictures; *all settings* compares the areas under frontiers. CaRot is
not among the arms: where a claim names it, the others are compared.
"""


def page(head: dict[str, Any], rows: Sequence[PhotoRow]) -> str:
    """The whole page."""
    of = studies(rows)
    commit = f", commit `{head['commit'][:10]}`" if "commit" in head else ""
    source = f"`{head['command']}`, {head['date']}, torch {head['versions']['torch']}{commit}"
    parts = [
        INTRODUCTION.strip(),
        f"{extent(rows)} ({source}).",
        tasks(rows),
        "## Verdicts",
        READING.strip(),
        verdict_table(of, CLAIMS),
        verdict_table(of, FURTHER_CLAIMS),
        "## Frontiers",
        f"![Task accuracy against what is kept, for every setting and α]({FIGURE})",
        "*Large: finetuned; small: mixed with the start (WiSE-FT); a line joins the best points of an arm.*",
        "The area under task accuracy × share kept, in %, over all settings and α:" if of[ALL] else "",
        area_table(of[ALL]),
        "## When does a moving teacher help?" if of[ALL] else "",
        moving_table(rows) if of[ALL] else "",
        "## At one setting",
        overview(of[ONE]),
        "## At the chosen settings" if of[CHOSEN] else "",
        overview(of[CHOSEN]) if of[CHOSEN] else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def extent(rows: Sequence[PhotoRow]) -> str:
    """What was run, and what of the full study was not."""
    trained = [row for row in rows if row.arm != ZERO_SHOT]
    names = list(dict.fromkeys(row.study for row in trained))
    seeds = f"{count} seeds" if (count := len({row.seed for row in trained})) > 1 else "one seed"
    absent = [name for name in TASKS if name not in names]
    lacking = f"the tasks {', '.join(absent)}, and " if absent else ""
    planned = len(list(jobs(SCALES["part"])))
    return (
        f"Run so far: {len(trained)} runs on {len(names)} of {len(TASKS)} tasks ({', '.join(names)}) with {seeds}; the "
        f"scale `part` has {planned}. Not run: {lacking}of the full study nine settings an arm and "
        f"{SCALES['full'].seeds} seeds"
    )


def tasks(rows: Sequence[PhotoRow]) -> str:
    """The tasks with what the model can do before training, by test set."""
    lines = []
    for start in {row.study: row for row in rows if row.arm == ZERO_SHOT}.values():
        sets = [f"{name} {100 * start.accuracy(name):.1f}" for name in start.scores["1"]]
        lines.append([start.study, TASKS[start.study].question, ", ".join(sets)])
    return markdown_table(("task", "what is learned and kept", "zero-shot accuracy (%)"), lines)


def area_table(arms: Arms) -> str:
    """The area below each arm's frontier, over all tasks and on each, and its difference from direct finetuning."""
    present = {name: rows for name, rows in arms.items() if rows}
    if not present:
        return "No arm has run all its settings yet, so that there is no area to compare."
    names = list(dict.fromkeys(row.study for row in next(iter(present.values()))))
    lines = []
    for name, rows in present.items():
        of_trials = trial_areas(rows)  # pyright: ignore[reportArgumentType]
        each = [
            percent(area_of({trial: own for trial, own in of_trials.items() if trial[0] == _number(task)}))
            for task in names
        ]
        gain = "" if name == "direct FT" else signed(area_difference(rows, present["direct FT"]))  # pyright: ignore
        lines.append([name, percent(area_of(of_trials)), gain, *each])
    return markdown_table(("arm", "all tasks", "− direct FT", *names), lines)


def moving_table(rows: Sequence[PhotoRow]) -> str:
    """For each task: what was known, how far the task moves the model, and what moving teachers add to a static one."""
    lines = []
    for task in dict.fromkeys(row.study for row in rows):
        own = [row for row in rows if row.study == task]
        arms = studies(own)[ALL]
        if not arms.get("static"):
            continue
        start = next(row for row in own if row.arm == ZERO_SHOT)
        moved = [
            row.agreement
            for row in own
            if row.arm == "direct FT" and row.rate == 3e-4 and row.agreement is not None
        ]
        gains = [signed(area_difference(arms[name], arms["static"])) for name in ("TRACER", "EMA")]  # pyright: ignore
        lines.append(
            [task, f"{100 * start.accuracy('task'):.1f}", f"{100 * (1 - np.mean(moved)):.0f}", *gains]
        )
    head = ("task", "known before (%)", "ImageNet names changed by direct FT (%)")
    return markdown_table((*head, "area: TRACER − static", "area: EMA − static"), lines)


def overview(arms: Arms) -> str:
    """Every arm, over all tasks: measures in %, how often it still picks the same ImageNet name, and its setting."""
    lines = []
    for name, rows in arms.items():
        if not rows:
            continue
        cells = [percent(value(rows, measure)) for measure in COLUMNS.values()]
        same = 100 * float(np.mean([row.agreement for row in rows if row.agreement is not None]))
        taken = {
            f"{row.rate:g}" + ("" if row.strength is None else f", λ = {row.strength:g}") for row in rows
        }
        lines.append([name, *cells, f"{same:.0f}", "" if name == ZERO_SHOT else "; ".join(sorted(taken))])
    return markdown_table(("arm", *COLUMNS, "same ImageNet name", "setting"), lines)


def side_by_side(emoji: Mapping[str, Arms], photo: Mapping[str, Arms], claims: Sequence[Claim]) -> str:
    """The verdict on each claim on EmojiShift, and on PhotoShift where that tests it."""
    tested = {claim.text: claim for claim in CLAIMS}
    lines = []
    for claim in claims:
        other = tested.get(claim.text)
        verdicts = [verdict(claim_comparisons(claim, emoji), claim.best)]
        verdicts += [verdict(claim_comparisons(other, photo), other.best) if other else "not tested yet"]
        lines.append([claim.text, *(f"*{each}*" for each in verdicts)])
    return markdown_table(("claim", "[EmojiShift](emojishift.md)", "[PhotoShift](photoshift.md)"), lines)


def signed(interval: Interval) -> str:
    """A difference in per cent with its sign."""
    low, middle, high = (100 * each for each in interval)
    return f"{middle:+.1f} [{low:+.1f}, {high:+.1f}]"


def _number(task: str) -> int:
    return list(TASKS).index(task)
