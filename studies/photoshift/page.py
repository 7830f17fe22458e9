"""The pages docs/photoshift.md and docs/photoshift-tables.md, and the verdicts on both benchmarks side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.emojishift.checks import Arms
from studies.emojishift.compare import difference, value
from studies.emojishift.page import percent, short_verdicts, verdict_table
from studies.emojishift.rows import Measure
from studies.emojishift.verdict import Claim, claim_comparisons, verdict
from studies.photoshift.claims import (
    ALL,
    CHOSEN,
    CLAIMS,
    FURTHER_CLAIMS,
    ONE,
    VARIED,
    chosen,
    complete,
    every_setting,
    finished,
    studies,
)
from studies.photoshift.frontier import area_difference, area_of, trial_areas
from studies.photoshift.rows import ZERO_SHOT, PhotoRow
from studies.photoshift.study import MOVING, RATE, SCALES, jobs
from studies.photoshift.tasks import MAIN_TASKS, TASKS
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval

FIGURE = Path("figures") / "photoshift.svg"  # beside the page
WHEN = Path("figures") / "photoshift-when.svg"
COLUMNS: dict[str, Measure] = {
    "task": "id",
    "drawings and emoji": "ood",
    "corrupted": "corrupted",
    "kept": "retention",
    "ECE": "ece id",
}
VARIED_COLUMNS: dict[str, Measure] = {
    name: measure for name, measure in COLUMNS.items() if measure != "corrupted"
}
INTRODUCTION = """
# PhotoShift

The paper's claims on pretrained towers and real photographs. EfficientNet-Lite0 (ImageNet) and MiniLM-L6, both from
package registries, become a zero-shot model by a projection from the rows of the ImageNet classifier to the embeddings
of its class names; no image is used. Its image tower is finetuned, at 64 pixels, on a few hundred pictures, and tested
on what it learned, on drawings and emoji of the same things, on corrupted pictures, and on what it should keep. How it
is done, and the rules that were fixed before: [`studies/photoshift`](../studies/photoshift). This page is written by
`python -m studies.photoshift page` from [the result file](../studies/photoshift/results), which has every answer of
every run with its command and commit. What it means for a choice: [Which to use](methods.md#which-to-use).
"""
READING = """
A claim needs three runs of each arm for a verdict. An interval is 95 %, over pictures (an emoji in all its styles is
one) and seeds, paired where two arms are compared; with two seeds its seed part is coarse, with one it is absent. ✓
supports a claim, ✗ contradicts it, · does neither; [Evidence](evidence.md#how-to-read-a-verdict) says how a verdict is
made of them. *One setting* is rate 3e-4 and λ = 0.9 for the three teachers; *chosen settings* are those of highest
accuracy on held-out training pictures; *all settings* compares the areas under frontiers. CaRot has fewer seeds: where
a claim of the paper names it beside others, those are compared, and CaRot in claims of its own.
"""
AREAS = """
The area under task accuracy × share kept, in %, over all settings and α. What should be kept can improve, and such a
share counts as more than one; the fourth column, added after results were seen, counts it as one.
"""
MOVING_TEXT = """
Animals are repeated with one thing changed each time: fewer and more pictures, fewer and more steps, and a start whose
projection was computed from fewer names (of 1 000), so that it knows less. What is compared is the area under the
frontier of each teacher, over all its settings and α. [All differences](TABLES#when-does-a-moving-teacher-help).
"""


def page(rows: Sequence[PhotoRow], tables: str) -> str:
    """What was found, on one short page; `tables` is the file beside it that holds every number."""
    of = studies(rows)
    setting, arms = "At the settings that held-out pictures chose", of[CHOSEN]
    if not arms:
        setting, arms = "At one setting", of[ONE]
    count = len({row.study for own in arms.values() for row in own})
    parts = [
        INTRODUCTION.strip(),
        f"Every number with its interval, by task and variant: [PhotoShift in tables]({tables}).",
        "## Learned and kept",
        f"{setting}, means over {count} tasks, in % with 95 % intervals:",
        overview(arms),
        f"![Task accuracy against what is kept, for every setting and α]({FIGURE})",
        "*Large: finetuned; small: mixed with the start (WiSE-FT); a line joins the best points of an arm.*",
    ]
    if of[ALL]:
        parts += [
            "## When does a moving teacher help?",
            f"{MOVING_TEXT.strip().replace('TABLES', tables)} {beyond_noise(rows)}",
            f"![What moving teachers add to a static one, by pictures, steps, start and task]({WHEN})",
        ]
    parts += [
        "## Verdicts",
        f"Beside those of EmojiShift: [Evidence](evidence.md#both-benchmarks); with all numbers: "
        f"[tables]({tables}#verdicts). CaRot has fewer seeds: a claim that names it rests on the other arms here, and "
        "CaRot is compared in claims of its own.",
        short_verdicts(of, CLAIMS),
        "What else was asked:",
        short_verdicts(of, FURTHER_CLAIMS),
    ]
    return "\n\n".join(parts) + "\n"


def tables_page(head: dict[str, Any], rows: Sequence[PhotoRow], summary: str) -> str:
    """Every number that the page `summary` rests on."""
    of = studies(rows)
    commit = f", commit `{head['commit'][:10]}`" if "commit" in head else ""
    source = f"`{head['command']}`, {head['date']}, torch {head['versions']['torch']}{commit}"
    parts = [
        "# PhotoShift in tables",
        f"What [PhotoShift]({summary}) rests on. {extent(rows)} ({source}).",
        "## Tasks",
        tasks(rows),
        "## Verdicts",
        READING.strip(),
        verdict_table(of, CLAIMS),
        verdict_table(of, FURTHER_CLAIMS),
    ]
    if of[ALL]:
        parts += ["## Frontiers", AREAS.strip(), area_table(of[ALL])]
        parts += ["## When does a moving teacher help?", moving_table(rows)]
    if of[VARIED]:
        note = f"Rate {RATE:g} and λ = 0.9; differences from TRACER are paired."
        parts += ["## Variants of TRACER", note, variant_table(of[VARIED])]
    parts += ["## At one setting", overview(of[ONE])]
    if of[CHOSEN]:
        parts += ["## At the chosen settings", overview(of[CHOSEN])]
    return "\n\n".join(parts) + "\n"


def extent(rows: Sequence[PhotoRow]) -> str:
    """What was run of each scale, and on how many tasks and seeds."""
    names = {row.run for row in rows}
    shares = []
    for scale in ("full", "variants", "lengths", "carot", "knowledge"):
        planned = [job.name for job in jobs(SCALES[scale])]
        shares.append(f"{len(names.intersection(planned))} of {len(planned)} runs of `{scale}`")
    seeds = {
        task: len({row.seed for row in rows if row.study == task and row.arm != ZERO_SHOT})
        for task in MAIN_TASKS
    }
    counts = ", ".join(f"{task} {count}" for task, count in seeds.items())
    return f"Run so far: {', '.join(shares)}. Seeds: {counts}"


def tasks(rows: Sequence[PhotoRow]) -> str:
    """The tasks with what the model can do before training, by test set."""
    lines = []
    for start in {row.study: row for row in rows if row.arm == ZERO_SHOT}.values():
        sets = [f"{name} {100 * start.accuracy(name):.1f}" for name in start.scores["1"]]
        lines.append([start.study, TASKS[start.study].question, ", ".join(sets)])
    return markdown_table(("task", "what is learned and kept", "zero-shot accuracy (%)"), lines)


def adapter_tables(rows: Sequence[PhotoRow]) -> str:
    """Arms that train less than the image tower beside TRACER and FLYP: at their chosen settings, and their areas."""
    scale = SCALES["adapters"]
    names = (ZERO_SHOT, "FLYP", "TRACER", *(arm.name for arm in scale.arms))
    arms = {
        name: [row for row in rows if row.arm == name and row.study in scale.tasks and row.seed < scale.seeds]
        for name in names
    }
    at_chosen = complete({name: chosen(finished(own)) for name, own in arms.items()})
    differences = [
        [name, *(signed(difference(own, at_chosen["TRACER"], each)) for each in VARIED_COLUMNS.values())]
        for name, own in at_chosen.items()
        if name not in (ZERO_SHOT, "TRACER")
    ]
    less = markdown_table(("less TRACER's", *VARIED_COLUMNS), differences)
    return "\n\n".join((overview(at_chosen), less, area_table(every_setting(arms), "TRACER")))


def area_table(arms: Arms, reference: str = "direct FT") -> str:
    """The area below each arm's frontier, over all tasks and on each, and its difference from a reference arm."""
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
        gains = ["", ""]
        if name != reference:
            gains = [signed(area_difference(rows, present[reference], most)) for most in (np.inf, 1.0)]  # pyright: ignore
        lines.append([name, percent(area_of(of_trials)), *gains, *each])
    return markdown_table(("arm", "all tasks", f"− {reference}", "the same, all kept at most", *names), lines)


def moving_gains(rows: Sequence[PhotoRow], most: float = np.inf) -> Iterator[tuple[str, dict[str, Interval]]]:
    """For each task that has them, what the areas of moving teachers have more than that of a static one.

    A share that is kept counts up to `most`.
    """
    for task in dict.fromkeys(row.study for row in rows):
        arms = every_setting(
            {name: [row for row in rows if (row.study, row.arm) == (task, name)] for name in MOVING}
        )
        if arms.get("static"):
            static = arms["static"]
            yield task, {name: area_difference(arms[name], static, most) for name in MOVING[-2:]}  # pyright: ignore


def moving_table(rows: Sequence[PhotoRow]) -> str:
    """For each task: what was known, how far the task moves the model, and what moving teachers add to a static one."""
    lines = []
    capped = dict(moving_gains(rows, most=1.0))
    for name, gains in moving_gains(rows):
        task, own = TASKS[name], [row for row in rows if row.study == name]
        start = next(row for row in own if row.arm == ZERO_SHOT)
        moved = [row.agreement for row in own if row.arm == "direct FT" and row.rate == RATE]
        changed = 100 * (1 - np.mean([each for each in moved if each is not None]))
        known = 100 * start.accuracy("task")
        place = [
            name,
            str(task.per_class * len(task.classes)),
            str(task.steps),
            f"{known:.1f}",
            f"{changed:.0f}",
        ]
        both = zip(gains.values(), capped[name].values(), strict=True)
        lines.append([*place, *(signed(each) for pair in both for each in pair)])
    head = ["task", "pictures", "steps", "known before (%)", "ImageNet names changed by direct FT (%)"]
    for teacher in MOVING[-2:]:
        head += [f"area: {teacher} − static", "the same, all kept at most"]
    return markdown_table(head, lines)


def beyond_noise(rows: Sequence[PhotoRow]) -> str:
    """The tasks on which a moving teacher has a larger or smaller area than a static one, in a sentence."""
    tasks_of: dict[str, list[str]] = {}
    for task, gains in moving_gains(rows):
        for teacher, gain in gains.items():
            if gain.low > 0 or gain.high < 0:
                sign = "larger" if gain.low > 0 else "smaller"
                tasks_of.setdefault(f"{teacher}: {sign}", []).append(f"“{task}”")
    if not tasks_of:
        return "Nowhere does a moving teacher differ from a static one beyond noise."
    differences = "; ".join(f"{what} on {', '.join(tasks)}" for what, tasks in tasks_of.items())
    return f"Areas that differ from a static teacher's beyond noise, as one in twenty would by chance: {differences}."


def variant_table(arms: Arms) -> str:
    """Each variant of TRACER: what it has more than TRACER on each measure, paired."""
    lines = [
        [name, *(signed(difference(rows, arms["TRACER"], measure)) for measure in VARIED_COLUMNS.values())]
        for name, rows in arms.items()
        if rows and name != "TRACER"
    ]
    own = [percent(value(arms["TRACER"], measure)) for measure in VARIED_COLUMNS.values()]
    return markdown_table(("arm", *VARIED_COLUMNS), [["TRACER", *own], *lines])


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
