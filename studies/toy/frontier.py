"""New task against retained accuracy at every λ, averaged over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tracer.core.metrics import Spread, mean_std

MEASURES = ("task", "original", "forgotten", "coloured", "flipped", "task_ece", "original_ece")
TOLERANCE = 0.01  # a strategy has learned the new task within this distance of direct finetuning


def forgetting(before: float, after: float) -> float:
    """The loss of original accuracy as a difference: from 96.8 % to 59.0 % it is 37.8 %."""
    return before - after


@dataclass(frozen=True)
class Row:
    """The accuracies of one model on the new task and on grey, coloured and colour-flipped digits, and its ECE."""

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
    """One point for all rows that differ only in the seed, in the order of the rows."""
    grouped: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.strategy, row.strength), []).append(row)
    return [
        Point(*key, {name: mean_std([getattr(row, name) for row in same]) for name in MEASURES})
        for key, same in grouped.items()
    ]


def curve(all_points: Sequence[Point], strategy: str) -> list[Point]:
    """The points of one strategy, weakest λ first."""
    return sorted((p for p in all_points if p.strategy == strategy), key=lambda p: p.strength or 0.0)


def front(all_points: Sequence[Point], measure: str = "original") -> list[Point]:
    """The Pareto front: points to which no other is at least as good at both tasks and better at one."""

    def beaten(point: Point) -> bool:
        own = (point.mean("task"), point.mean(measure))
        others = [(other.mean("task"), other.mean(measure)) for other in all_points]
        return any(all(a >= b for a, b in zip(one, own, strict=True)) and one != own for one in others)

    return [point for point in all_points if not beaten(point)]


def learned(all_points: Sequence[Point]) -> float:
    """The accuracy from which the new task counts as learned: that of direct finetuning minus one point."""
    (direct,) = curve(all_points, "direct")
    return direct.mean("task") - TOLERANCE


def learns(all_points: Sequence[Point], point: Point) -> bool:
    """Whether a point counts as having learned the new task."""
    return point.mean("task") >= learned(all_points)


def star(all_points: Sequence[Point], point: Point) -> str:
    """ "*" for the best λ of a strategy, "(*)" if no λ of the strategy learns the task, else ""."""
    if point.strength is None or point is not best(all_points, point.strategy):
        return ""
    return "*" if learns(all_points, point) else "(*)"


def best(all_points: Sequence[Point], strategy: str) -> Point:
    """The λ of a strategy that retains most among those that learn the task, else the one that learns most."""
    own = curve(all_points, strategy)
    able = [point for point in own if learns(all_points, point)]
    if able:
        return max(able, key=lambda point: point.mean("original"))
    return max(own, key=lambda point: point.mean("task"))
