"""What each way to a model reaches on test data: area, and regret against the best of all mixtures in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

from studies.fit.measure import DEFAULTS, KEEPS, spec
from studies.fit.tasks import DEFAULT_RATE
from tracer.core.metrics.intervals import NORMAL_QUANTILE
from tracer.fitting.choice import area

Row = dict[str, Any]
PROBE = "lp ("  # how `spec` of a linear probe begins


class Reached(NamedTuple):
    """Test accuracy and share kept of one model, and how far it is from the best in hindsight."""

    accuracy: float
    kept: float
    area: float  # relative to that under all mixtures of all runs
    front: float  # that under all mixtures of the runs that this way makes, relative to the same
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
        self.whole = self.covered(self.rows) or 1.0

    def place(self, row: Row, half: int | None = None) -> tuple[float, float]:
        """Accuracy and share kept, on all test images or on one half of them."""
        part = slice(None) if half is None else slice(half, half + 1)
        before = sum(self.pretrained["kept"][part])
        kept = min(1.0, sum(row["kept"][part]) / max(1, before))  # what it learns anew is not kept
        return sum(row["test"][part]) / sum(self.result["n"][part]), kept

    def covered(self, rows: Sequence[Row], above: float = 0.0) -> float:
        """The area under some mixtures, above an accuracy."""
        return area([(accuracy - above, kept) for accuracy, kept in map(self.place, rows)])

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

    def reached(self, row: Row, runs: Sequence[Row]) -> Reached:
        """What a model reaches, and the front of all mixtures of the runs that it comes from."""
        accuracy, kept = self.place(row)
        crossed = [self.regret(row, 0, 1), self.regret(row, 1, 0)]
        task, more, point = (sum(values) / 2 for values in zip(*crossed, strict=True))
        task_hindsight, kept_hindsight, _ = self.regret(row, None, None)
        own, front = (self.covered(rows) / self.whole for rows in ([row], [self.pretrained, row, *runs]))
        return Reached(accuracy, kept, own, front, task, more, point, task_hindsight, kept_hindsight)

    def at(self, trial: str, alpha: float) -> Row:
        """A mixture of a trial; the pretrained model if there is no such trial."""
        rows = [row for row in self.rows if (row["trial"], row["alpha"]) == (trial, alpha)]
        return rows[0] if rows else self.pretrained

    def chosen(self, keep: float | None = None) -> Row:
        """The model that `fit` chose."""
        return self.at(*self.result["chosen"][str(keep)])

    def ways(self) -> dict[str, Row]:
        """The model of every way that is compared."""
        ways = {"pretrained": self.pretrained, "fit": self.chosen()}
        ways |= {f"fit --keep {keep}": self.chosen(keep) for keep in KEEPS}
        probe = [
            row for row in self.result["points"] if row["alpha"] == 1 and row["method"].startswith(PROBE)
        ]
        if probe:
            ways["linear probe"] = probe[0]
        full = max(row["steps"] for row in self.result["points"])
        for method in DEFAULTS:
            own = {
                row["lr"]: row
                for row in self.result["points"]
                if (row["method"], row["alpha"], row["steps"]) == (spec(method), 1, full)
                and row["lr"] in self.result["rates"]
            }
            if DEFAULT_RATE not in own:
                continue
            kinds = {"default": own[DEFAULT_RATE]}
            if len(own) > 1:
                kinds["rate by accuracy"] = max(own.values(), key=lambda row: (row["held_out"], -row["lr"]))
            for kind, row in kinds.items():
                ways[f"{method.method}, {kind}"] = row
                if method.method == "ft":
                    ways[f"ft, {kind}, α = 0.5"] = self.at(row["trial"], 0.5)
        return ways

    def compared(self) -> dict[str, Reached]:
        """What every way reaches."""
        searched = [row for row in self.result["points"] if row["searched"]]
        return {
            name: self.reached(
                row,
                searched
                if name.startswith("fit")
                else [each for each in self.result["points"] if each["trial"] == row["trial"]],
            )
            for name, row in self.ways().items()
        }

    def coverage(self) -> float:
        """The area under the mixtures of the search relative to that under those of the grid.

        Both above the pretrained model's accuracy: below it there is nothing to find.
        """
        start, points = self.place(self.pretrained)[0], self.result["points"]
        full = max(row["steps"] for row in points)
        searched = self.covered([row for row in points if row["searched"]], start)
        return searched / self.covered(
            [row for row in points if row["gridded"] and row["steps"] == full], start
        )

    @property
    def worse(self) -> bool:
        """Whether the choice of `fit` is worse than the pretrained model on both axes beyond noise."""
        (accuracy, kept), (before, _) = self.place(self.chosen()), self.place(self.pretrained)
        noise = NORMAL_QUANTILE * sqrt(2 * before * (1 - before) / sum(self.result["n"]))
        return accuracy < before - noise and kept < 1 - noise


class Promise(NamedTuple):
    """Of the runs of one --keep: all, those that kept it on the test data, those that left the pretrained model.

    And those that changed a tower: a linear probe on other classes keeps all by its making.
    """

    runs: int
    held: int
    moved: int
    trained: int


def promises(results: Sequence[dict[str, Any]]) -> dict[float, Promise]:
    """How often each --keep held on test data."""
    counts = {}
    for keep in KEEPS:
        rows = [(each, each.chosen(keep)) for each in map(Scored, results)]
        moved = [row for _, row in rows if row["alpha"] > 0]
        held = sum(scored.place(row)[1] >= keep for scored, row in rows)
        trained = sum(not row["method"].startswith(PROBE) for row in moved)
        counts[keep] = Promise(len(rows), held, len(moved), trained)
    return counts
