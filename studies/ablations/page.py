"""Put the tables and the figure of the four ablations into docs/ablations.md, from the tables of finished sweeps.

    tracer sweep tracer.recipes.ablation:beta          and strength, interval, terms, into runs/
    python -m studies.ablations.page            keeps their tables in studies/ablations/results, writes page and figure

What stands between two marks of the page is replaced; the rest of it is written by hand.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from studies.ablations import published
from studies.ablations.published import Printed
from studies.figure import BLUE, GREY, ORANGE, blank, save
from tracer.report.spread import Estimate, over_seeds
from tracer.storage.atomic import write_bytes, write_text

HERE = Path(__file__).resolve().parents[2]
KEPT, PAGE, FIGURES = (
    HERE / "studies" / "ablations" / "results",
    HERE / "docs" / "ablations.md",
    HERE / "docs" / "figures",
)
TERMS = ("feature", "cross", "interactive", "relational")
SHORT = ("FD", "X", "ICL", "CRD")  # X: CrossKD
Line = dict[str, str]


class Ablation(NamedTuple):
    """A sweep, how a run's setting is called, and what the paper prints for it."""

    name: str
    column: str
    setting: Callable[[Line], str]
    base: str  # the setting that the others are compared with
    named: str  # what it is called
    printed: dict[str, Printed]


def terms(line: Line) -> str:
    return "".join("0" if line[term] in ("0", "0.0") else "1" for term in TERMS)


def interval(line: Line) -> str:
    return line["every"] if line["clock"] == "progress" else f"{line['every']}, released clock"


ABLATIONS = (
    Ablation("terms", "FD, CrossKD, ICL, CRD", terms, "1111", "all four", published.TERMS),
    Ablation("strength", "λ", lambda line: line["strength"], "1", "λ = 1", published.STRENGTH),
    Ablation(
        "interval",
        "steps between moves",
        interval,
        "1",
        "every step",
        {f"{key}, released clock": row for key, row in published.INTERVAL.items()},
    ),
    Ablation("beta", "β", lambda line: line["beta"], "0.5", "β = 0.5", published.BETA),
)
# Columns of a sweep's table, and their heads.
MEASURES = {
    "accuracy": "task",
    "retain.digits:flipped": "shift",
    "retain.digits": "kept",
    "calibration.digits:flipped.ece": "ECE of the shift",
}


THEIRS = ("paper: task", "paper: shifts", "paper: ECE")
SHIFT = "retain.digits:flipped"


def runs(ablation: Ablation) -> dict[str, dict[str, Line]]:
    """What was measured, by setting and seed, in the order of the settings."""
    found: dict[str, dict[str, Line]] = {}
    with (KEPT / f"{ablation.name}.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(ablation.setting(line), {})[line["seed"]] = line
    return {setting: found[setting] for setting in sorted(found, key=_order)}


def means(lines: dict[str, Line]) -> dict[str, Estimate]:
    """Means with Student's 95 % intervals over seeds."""
    return {name: over_seeds([float(line[name]) for line in lines.values()]) for name in MEASURES}


def gain(lines: dict[str, Line], base: dict[str, Line]) -> Estimate:
    """How much better the shift is than under the base, seed by seed: what a seed does to both cancels."""
    return over_seeds(
        [float(line[SHIFT]) - float(base[seed][SHIFT]) for seed, line in lines.items() if seed in base]
    )


def _order(setting: str) -> tuple[str, float]:
    """By number, one clock after the other."""
    number, _, clock = setting.partition(",")
    return clock, float(number)


def table(ablation: Ablation) -> str:
    """Ours beside the paper's, as Markdown."""
    heads = (ablation.column, *MEASURES.values(), f"shift against {ablation.named}", *THEIRS)
    lines = [heads, ("---", *["--:"] * (len(heads) - 1))]
    made = runs(ablation)
    for setting, found in made.items():
        printed = ablation.printed.get(setting)
        theirs = (
            (f"{printed.task:.2f}", f"{printed.shifts:.2f}", f"{printed.ece:.3f}") if printed else ("",) * 3
        )
        against = "" if setting == ablation.base else _cell(gain(found, made[ablation.base]), "+")
        lines.append((_spoken(ablation, setting), *map(_cell, means(found).values()), against, *theirs))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _spoken(ablation: Ablation, setting: str) -> str:
    return " ".join("✓" if each == "1" else "–" for each in setting) if ablation.name == "terms" else setting


def _cell(estimate: Estimate, sign: str = "") -> str:
    half = "" if estimate.half is None else f" ± {100 * estimate.half:.1f}"
    return f"{100 * estimate.value:{sign}.1f}{half}"


def drawn(ablations: Sequence[Ablation]) -> None:
    """One panel an ablation, one legend for all."""
    figure = blank(width=12, height=8)
    lines: dict[str, Any] = {}
    for panel, ablation in zip(figure.subplots(2, 2).ravel(), ablations, strict=True):
        lines = _panel(panel, ablation)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    save(figure, FIGURES, "ablations")
    (FIGURES / "ablations.png").unlink()


def _panel(panel: Any, ablation: Ablation) -> dict[str, Any]:
    """What each setting does to the shift, seed by seed, and to the paper's shifts; returns the lines by label."""
    made, printed = runs(ablation), ablation.printed
    names = [_short(ablation, setting) for setting in made]
    gains = [gain(lines, made[ablation.base]) for lines in made.values()]
    heights, halves = [100 * each.value for each in gains], [100 * (each.half or 0) for each in gains]
    bars = panel.errorbar(names, heights, halves, color=BLUE, marker="o", capsize=3)
    base = next(
        printed[each] for each in (ablation.base, f"{ablation.base}, released clock") if each in printed
    )
    known = [(name, printed[each].shifts) for name, each in zip(names, made, strict=True) if each in printed]
    theirs = [(name, shifts - base.shifts) for name, shifts in known]
    (line,) = panel.plot(*zip(*theirs, strict=True), color=ORANGE, marker="D", linestyle="--")
    panel.axhline(0, color=GREY, linewidth=0.8)
    panel.set(xlabel=ablation.column, ylabel=f"shift against {ablation.named} (points)", title=ablation.name)
    panel.tick_params(axis="x", labelrotation=90 if ablation.name == "terms" else 0)
    return {"here": bars, "in the paper, over five shifts": line}


def _short(ablation: Ablation, setting: str) -> str:
    """A setting as it fits under an axis."""
    if ablation.name != "terms":
        return setting.replace(", released clock", "\nreleased")
    return "+".join(name for name, each in zip(SHORT, setting, strict=True) if each == "1") or "none"


def main(folder: Path) -> None:
    for ablation in ABLATIONS:
        made = folder / ablation.name / "table.csv"
        if made.exists():
            write_bytes(KEPT / f"{ablation.name}.csv", made.read_bytes())
    page = PAGE.read_text()
    for ablation in ABLATIONS:
        mark = re.escape(f"<!-- {ablation.name} -->")
        new = f"<!-- {ablation.name} -->\n{table(ablation)}\n<!-- {ablation.name} -->"
        page = re.sub(f"{mark}.*?{mark}", lambda _, new=new: new, page, flags=re.DOTALL)
    write_text(PAGE, page)
    drawn(ABLATIONS)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
