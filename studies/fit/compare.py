"""What each way to a model reaches on test data: area, and regret against the front of all mixtures in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from studies.fit.measure import GRID_RATES, KEEPS, METHODS
from tracer.core.metrics.intervals import wilson_interval
from tracer.fitting.choice import area

DEFAULT_RATE = 3e-4  # of the recipes for these small models


class Reached(NamedTuple):
    """Test accuracy and share kept of one model, and how far it is from the best in hindsight."""

    accuracy: float
    kept: float
    area: float  # relative to that of all mixtures
    task_regret: float  # accuracy of the best mixture that keeps as much, minus its own
    kept_regret: float  # share kept by the best mixture that is as accurate, minus its own


def reached(result: dict[str, Any]) -> dict[str, Reached]:
    """Every way's model, for one task and seed."""
    before, points = result["before"], result["points"]
    pretrained = {**before, "alpha": 0.0, "trial": "pretrained"}

    def place(row: dict[str, Any]) -> tuple[float, float]:
        return row["test"] / row["n"], row["kept"] / max(1, before["kept"])

    front = [place(row) for row in (pretrained, *points)]
    whole = area(front)

    def judged(row: dict[str, Any]) -> Reached:
        accuracy, kept = place(row)
        task = max(a for a, k in front if k >= kept) - accuracy
        more = max(k for a, k in front if a >= accuracy) - kept
        return Reached(accuracy, kept, area([(accuracy, kept)]) / whole, task, more)

    def at(trial: str, alpha: float) -> dict[str, Any]:
        rows = [row for row in points if (row["trial"], row["alpha"]) == (trial, alpha)]
        return rows[0] if rows else pretrained

    full = max(row["steps"] for row in points)
    grid = [row for row in points if row["steps"] == full and row["lr"] in GRID_RATES]
    ways = {"pretrained": pretrained, "fit": at(*result["chosen"]["None"])}
    ways |= {f"fit --keep {keep}": at(*result["chosen"][str(keep)]) for keep in KEEPS}
    for method in METHODS:
        own = [row for row in grid if row["method"] == method.label and row["alpha"] == 1]
        if not own:
            continue
        ways |= {f"{method.label}, default": row for row in own if row["lr"] == DEFAULT_RATE}
        best = max(own, key=lambda row: (row["held_out"], -row["lr"]))
        ways[f"{method.label}, rate by accuracy"] = best
        if method.method == "ft":
            ways["direct, rate by accuracy, α = 0.5"] = at(best["trial"], 0.5)
    return {name: judged(row) for name, row in ways.items()}


def promises(results: Sequence[dict[str, Any]]) -> dict[float, tuple[int, int, int]]:
    """For each --keep: runs that kept it on test data, runs that clearly did not, and runs that left the start."""
    counts = {}
    for keep in KEEPS:
        kept = broken = moved = 0
        for result in results:
            trial, alpha = result["chosen"][str(keep)]
            if alpha == 0:
                kept += 1
                continue
            moved += 1
            row = next(r for r in result["points"] if (r["trial"], r["alpha"]) == (trial, alpha))
            start = result["before"]["kept"]
            kept += row["kept"] >= keep * start
            broken += wilson_interval(row["kept"] / row["m"], row["m"]).high < keep * start / row["m"]
        counts[keep] = (kept, broken, moved)
    return counts
