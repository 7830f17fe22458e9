"""What each way to a model reaches on test data: area, and regret against the best of all mixtures in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

from studies.fit.measure import DEFAULTS, KEEPS, RATES
from tracer.core.metrics.intervals import NORMAL_QUANTILE
from tracer.fitting.choice import area

DEFAULT_RATE = 3e-4  # of our recipes for small models
Row = dict[str, Any]


class Reached(NamedTuple):
    """Test accuracy and share kept of one model, and how far it is from the best in hindsight."""

    accuracy: float
    kept: float
    area: float  # relative to that under all mixtures of all runs
    task_regret: float  # how much more accurate the best is that keeps as much
    kept_regret: float  # how much more the best keeps that is as accurate
    point_regret: float  # of accuracy × share kept, against the single mixture where that is highest
    task_hindsight: float  # the same with the best chosen on the images that score it: an upper bound
    kept_hindsight: float


class Scored:
    """The mixtures of one task and seed, the pretrained model among them, on test data."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result
        self.pretrained: Row = {**result["before"], "alpha": 0.0, "trial": "pretrained"}
        self.rows: list[Row] = [self.pretrained, *result["points"]]
        self.whole = area([self.place(row) for row in self.rows]) or 1.0

    def place(self, row: Row, half: int | None = None) -> tuple[float, float]:
        """Accuracy and share kept, on all test images or on one half of them."""
        part = slice(None) if half is None else slice(half, half + 1)
        before = sum(self.pretrained["kept"][part])
        kept = min(1.0, sum(row["kept"][part]) / max(1, before))  # what it learns anew is not kept
        return sum(row["test"][part]) / sum(self.result["n"][part]), kept

    def regret(self, row: Row, choose: int | None, score: int | None) -> tuple[float, float, float]:
        """Regret of a model on the task, in what it keeps, and in their product.

        The best are chosen on one half of the test images and scored on another.
        """
        accuracy, kept = self.place(row, choose)
        places = [(number, *self.place(each, choose)) for number, each in enumerate(self.rows)]
        better = max((a, k, number) for number, a, k in places if k >= kept)[-1]
        keeping = max((k, a, number) for number, a, k in places if a >= accuracy)[-1]
        single = max((a * k, number) for number, a, k in places)[-1]
        own, best = self.place(row, score), self.place(self.rows[single], score)
        return (
            self.place(self.rows[better], score)[0] - own[0],
            self.place(self.rows[keeping], score)[1] - own[1],
            best[0] * best[1] - own[0] * own[1],
        )

    def reached(self, row: Row) -> Reached:
        """What a model reaches."""
        accuracy, kept = self.place(row)
        crossed = [self.regret(row, 0, 1), self.regret(row, 1, 0)]
        task, more, point = (sum(values) / 2 for values in zip(*crossed, strict=True))
        task_hindsight, kept_hindsight, _ = self.regret(row, None, None)
        own = area([(accuracy, kept)]) / self.whole
        return Reached(accuracy, kept, own, task, more, point, task_hindsight, kept_hindsight)

    def at(self, trial: str, alpha: float) -> Row:
        """A mixture of a trial; the pretrained model if there is no such trial."""
        rows = [row for row in self.rows if (row["trial"], row["alpha"]) == (trial, alpha)]
        return rows[0] if rows else self.pretrained

    def ways(self) -> dict[str, Row]:
        """The model of every way that is compared."""
        chosen = self.result["chosen"]
        ways = {"pretrained": self.pretrained, "fit": self.at(*chosen["None"])}
        ways |= {f"fit --keep {keep}": self.at(*chosen[str(keep)]) for keep in KEEPS}
        probe = [row for row in self.rows if row["alpha"] == 1 and row["method"].startswith("lp (")]
        if probe:
            ways["lp"] = probe[0]
        full = max(row["steps"] for row in self.result["points"])
        for method in DEFAULTS:
            own = [
                row
                for row in self.result["points"]
                if (row["method"], row["alpha"], row["steps"]) == (method.label, 1, full)
                and row["lr"] in RATES
            ]
            if not own:
                continue
            ways |= {f"{method.label} at {row['lr']:g}": row for row in own}
            best = max(own, key=lambda row: (row["held_out"], -row["lr"]))
            ways[f"{method.label}, rate by accuracy"] = best
            if method.method == "ft":
                ways["ft, rate by accuracy, α = 0.5"] = self.at(best["trial"], 0.5)
        return ways

    def coverage(self) -> float | None:
        """The area under the mixtures of the search relative to that under the grid's, if the grid is large.

        Both above the pretrained model's accuracy: below it there is nothing to find.
        """
        if self.result["grid"] < 100:
            return None
        start = self.place(self.pretrained)[0]

        def gained(rows: Sequence[Row]) -> float:
            return area([(a - start, k) for a, k in map(self.place, rows)])

        points = self.result["points"]
        full = max(row["steps"] for row in points)
        return gained([row for row in points if row["searched"]]) / gained(
            [row for row in points if row["gridded"] and row["steps"] == full]
        )


def compared(results: Sequence[dict[str, Any]]) -> list[dict[str, Reached]]:
    """Every way's model, for each task and seed."""
    return [
        {name: scored.reached(row) for name, row in scored.ways().items()} for scored in map(Scored, results)
    ]


def worse_than_pretrained(results: Sequence[dict[str, Any]]) -> int:
    """Tasks and seeds on which the choice of `fit` is worse than the pretrained model on both axes beyond noise."""
    count = 0
    for scored in map(Scored, results):
        row = scored.at(*scored.result["chosen"]["None"])
        (accuracy, kept), (before, _) = scored.place(row), scored.place(scored.pretrained)
        noise = NORMAL_QUANTILE * sqrt(2 * before * (1 - before) / sum(scored.result["n"]))
        count += accuracy < before - noise and kept < 1 - noise
    return count


class Promise(NamedTuple):
    """Of the runs of one --keep: all, those that kept it on the test data, and those that left the pretrained model."""

    runs: int
    held: int
    moved: int


def promises(results: Sequence[dict[str, Any]]) -> dict[float, Promise]:
    """How often each --keep held on test data."""
    counts = {}
    for keep in KEEPS:
        rows = [(each, each.at(*each.result["chosen"][str(keep)])) for each in map(Scored, results)]
        held = sum(scored.place(row)[1] >= keep for scored, row in rows)
        counts[keep] = Promise(len(rows), held, sum(row["alpha"] > 0 for _, row in rows))
    return counts
