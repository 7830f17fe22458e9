"""Write the tables and the figure of docs/ablations.md from the tables of finished sweeps.

    tracer sweep tracer.recipes.ablation:beta   and strength, interval, terms, into runs/
    python -m studies.ablations.page            copies their tables to studies/ablations/results, writes page and figure

Only the text between two markers of the page is replaced; the rest is written by hand.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from studies.ablations import full_run, published
from studies.ablations.published import Printed
from studies.figure import BLUE, GREY, ORANGE, blank, save
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval, t_interval
from tracer.storage.atomic import write_bytes, write_text

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAGE, FIGURES = (
    ROOT / "studies" / "ablations" / "results",
    ROOT / "docs" / "ablations.md",
    ROOT / "docs" / "figures",
)
TERMS = ("feature", "cross", "interactive", "relational")
SHORT = ("FD", "X", "ICL", "CRD")  # X: CrossKD
Line = dict[str, str]


class Ablation(NamedTuple):
    """A sweep, the label of a run's setting, and the paper's numbers."""

    name: str
    column: str
    setting: Callable[[Line], str]
    base: str  # the setting that the others are compared with
    base_label: str
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
    """The lines of the sweep's table by setting and seed, sorted by setting."""
    by_setting: dict[str, dict[str, Line]] = {}
    with (RESULTS / f"{ablation.name}.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            by_setting.setdefault(ablation.setting(line), {})[line["seed"]] = line
    return {setting: by_setting[setting] for setting in sorted(by_setting, key=_order)}


def means(lines: dict[str, Line]) -> dict[str, Interval]:
    """Means with Student's 95 % intervals over seeds."""
    return {name: t_interval([float(line[name]) for line in lines.values()]) for name in MEASURES}


def gain(lines: dict[str, Line], base: dict[str, Line]) -> Interval:
    """The gain on the shift over the base setting, paired by seed."""
    return t_interval(
        [float(line[SHIFT]) - float(base[seed][SHIFT]) for seed, line in lines.items() if seed in base]
    )


def _order(setting: str) -> tuple[str, float]:
    """The sorting key of a setting: clock, then number."""
    number, _, clock = setting.partition(",")
    return clock, float(number)


def table(ablation: Ablation) -> str:
    """Our numbers beside the paper's, as Markdown."""
    heads = (ablation.column, *MEASURES.values(), f"shift against {ablation.base_label}", *THEIRS)
    rows = []
    by_setting = runs(ablation)
    for setting, lines in by_setting.items():
        printed = ablation.printed.get(setting)
        theirs = (
            (f"{printed.task:.2f}", f"{printed.shifts:.2f}", f"{printed.ece:.3f}") if printed else ("",) * 3
        )
        against = "" if setting == ablation.base else _cell(gain(lines, by_setting[ablation.base]), "+")
        rows.append((_label(ablation, setting), *map(_cell, means(lines).values()), against, *theirs))
    return markdown_table(heads, rows)


def _label(ablation: Ablation, setting: str) -> str:
    return " ".join("✓" if each == "1" else "–" for each in setting) if ablation.name == "terms" else setting


def _cell(estimate: Interval, sign: str = "") -> str:
    half = f" ± {100 * estimate.half_width:.1f}" if estimate.known else ""
    return f"{100 * estimate.value:{sign}.1f}{half}"


def draw(ablations: Sequence[Ablation]) -> None:
    """Draw the figure, one panel for each ablation."""
    figure = blank(width=12, height=8)
    lines: dict[str, Any] = {}
    for panel, ablation in zip(figure.subplots(2, 2).ravel(), ablations, strict=True):
        lines = _panel(panel, ablation)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    save(figure, FIGURES, "ablations")
    (FIGURES / "ablations.png").unlink()


def _panel(panel: Any, ablation: Ablation) -> dict[str, Any]:
    """The gain of each setting on the shift, here and in the paper; returns the lines by label."""
    by_setting, printed = runs(ablation), ablation.printed
    names = [_short(ablation, setting) for setting in by_setting]
    gains = [gain(lines, by_setting[ablation.base]) for lines in by_setting.values()]
    heights = [100 * each.value for each in gains]
    halves = [100 * each.half_width if each.known else 0 for each in gains]
    bars = panel.errorbar(names, heights, halves, color=BLUE, marker="o", capsize=3)
    base = next(
        printed[each] for each in (ablation.base, f"{ablation.base}, released clock") if each in printed
    )
    known = [
        (name, printed[each].shifts) for name, each in zip(names, by_setting, strict=True) if each in printed
    ]
    theirs = [(name, shifts - base.shifts) for name, shifts in known]
    (line,) = panel.plot(*zip(*theirs, strict=True), color=ORANGE, marker="D", linestyle="--")
    panel.axhline(0, color=GREY, linewidth=0.8)
    panel.set(
        xlabel=ablation.column, ylabel=f"shift against {ablation.base_label} (points)", title=ablation.name
    )
    panel.tick_params(axis="x", labelrotation=90 if ablation.name == "terms" else 0)
    return {"here": bars, "in the paper, over five shifts": line}


def _short(ablation: Ablation, setting: str) -> str:
    """The label of a setting on an axis."""
    if ablation.name != "terms":
        return setting.replace(", released clock", "\nreleased")
    return "+".join(name for name, each in zip(SHORT, setting, strict=True) if each == "1") or "none"


def main(folder: Path) -> None:
    """Copy the tables of the sweeps in `folder`, then write page and figure."""
    for ablation in ABLATIONS:
        swept = folder / ablation.name / "table.csv"
        if swept.exists():
            write_bytes(RESULTS / f"{ablation.name}.csv", swept.read_bytes())
    page = PAGE.read_text()
    tables = {ablation.name: table(ablation) for ablation in ABLATIONS}
    for name, rows in {**tables, "full run": full_run.table(full_run.courses())}.items():
        mark = f"<!-- {name} -->"
        new = f"{mark}\n{rows}\n{mark}"
        page = re.sub(f"{mark}.*?{mark}", lambda _, new=new: new, page, flags=re.DOTALL)
    write_text(PAGE, page)
    draw(ABLATIONS)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
