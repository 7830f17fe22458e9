"""The whole frontier: new task against old knowledge at every λ, averaged over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tracer.core.metrics import Spread, mean_std

MEASURES = ("task", "original", "forgotten", "coloured", "flipped", "task_ece", "original_ece")
TOLERANCE = 0.01  # a strategy has learned the new task if it comes this near to direct finetuning


def forgetting(before: float, after: float) -> float:
    """How much of the original accuracy is gone, as a difference: 96.8 % to 59.0 % is 37.8 %."""
    return before - after


@dataclass(frozen=True)
class Row:
    """One model: accuracies on the new task, on grey, coloured and colour-flipped digits, and calibration."""

    strategy: str
    strength: float | None
    seed: int
    task: float
    original: float
    forgotten: float
    coloured: float
    flipped: float
    task_ece: float
    original_ece: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Point:
    """A strategy at one λ over all seeds."""

    strategy: str
    strength: float | None
    spread: dict[str, Spread]

    def mean(self, measure: str) -> float:
        return self.spread[measure].mean


def points(rows: Iterable[Row]) -> list[Point]:
    """Rows that differ in the seed alone become one point; the order is kept."""
    grouped: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.strategy, row.strength), []).append(row)
    return [
        Point(*key, {name: mean_std([getattr(row, name) for row in same]) for name in MEASURES})
        for key, same in grouped.items()
    ]


def curve(found: Sequence[Point], strategy: str) -> list[Point]:
    """The points of one strategy, weakest λ first."""
    return sorted((p for p in found if p.strategy == strategy), key=lambda p: p.strength or 0.0)


def front(found: Sequence[Point], kept: str = "original") -> list[Point]:
    """The points that no other one beats: none is at least as good at both tasks and better at one."""

    def beaten(point: Point) -> bool:
        mine = (point.mean("task"), point.mean(kept))
        others = [(other.mean("task"), other.mean(kept)) for other in found]
        return any(all(a >= b for a, b in zip(one, mine, strict=True)) and one != mine for one in others)

    return [point for point in found if not beaten(point)]


def learned(found: Sequence[Point]) -> float:
    """The accuracy from which on the new task counts as learned: that of direct finetuning, less one point."""
    (direct,) = curve(found, "direct")
    return direct.mean("task") - TOLERANCE


def learns(found: Sequence[Point], point: Point) -> bool:
    """Whether a point counts as having learned the new task."""
    return point.mean("task") >= learned(found)


def star(found: Sequence[Point], point: Point) -> str:
    """ "*" on the best λ of a strategy, "(*)" where it is the best of λ none of which learns the task."""
    if point.strength is None or point is not best(found, point.strategy):
        return ""
    return "*" if learns(found, point) else "(*)"


def best(found: Sequence[Point], strategy: str) -> Point:
    """Each strategy at its own best λ: what keeps most among those that learn the task, else what learns most."""
    own = curve(found, strategy)
    able = [point for point in own if learns(found, point)]
    if able:
        return max(able, key=lambda point: point.mean("original"))
    return max(own, key=lambda point: point.mean("task"))
