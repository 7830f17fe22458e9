"""The rules by which one point is chosen from the paths of all trials. Pure functions of right and wrong answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from statistics import NormalDist
from typing import NamedTuple

from tracer.core.metrics.intervals import NORMAL_QUANTILE, Interval, paired_interval, ratio_bound

# Probability that the chosen model keeps less than --keep asks for, or is better than the pretrained one by luck alone.
RISK = 0.05
PRETRAINED = "pretrained"

Hits = Sequence[bool]


class Point(NamedTuple):
    """A trial's weights mixed with the pretrained ones at α, and their answers on held-out and on retained images."""

    trial: str
    alpha: float
    hits: Hits
    kept: Mapping[str, Hits]
    frozen: bool = False  # unchanged towers, without a new head on the retained data: nothing can be lost

    @property
    def accuracy(self) -> float:
        return sum(self.hits) / len(self.hits)

    def retention(self, before: Point) -> float:
        """The lowest ratio of right answers to those of `before`, over the retained data sets; at most 1."""
        return min(1.0, *(sum(self.kept[name]) / max(1, sum(hits)) for name, hits in before.kept.items()))

    def retention_interval(self, before: Point) -> Interval:
        """That ratio with its 95 % interval; both ends are at most 1."""
        value = self.retention(before)
        name = min(before.kept, key=lambda name: sum(self.kept[name]) / max(1, sum(before.kept[name])))
        first, second = before.kept[name], self.kept[name]
        low = ratio_bound(first, second, NORMAL_QUANTILE)
        inverse = ratio_bound(second, first, NORMAL_QUANTILE)  # before to after: 1 / the upper end
        high = 1 / inverse if inverse else 1.0
        return Interval(min(low, value), value, min(1.0, max(high, value)))

    def retention_bound(self, before: Point, quantile: float) -> float:
        """The lowest lower bound of that ratio, at a quantile of the normal distribution; 1 if nothing can be lost."""
        if self.frozen:
            return 1.0
        return min(ratio_bound(hits, self.kept[name], quantile) for name, hits in before.kept.items())

    def surely_kept(self, before: Point) -> float:
        """The share kept less one standard error, at most 1: the highest of many measured shares is a lucky one."""
        return min(1.0, self.retention_bound(before, 1.0))

    @property
    def caution(self) -> float:
        """What decides between equals: the smaller α; where nothing can be lost, mixing is good for nothing."""
        return self.alpha if self.frozen else -self.alpha


class Choice(NamedTuple):
    """The chosen point, and why."""

    point: Point
    reason: str


def choose(before: Point, points: Sequence[Point], keep: float | None = None) -> Choice:
    """The point to take, out of the paths of all trials; `before` is the pretrained model.

    Only points that are better than the pretrained model on the held-out images beyond noise are considered, at a level
    divided by the number of trials; without any it is the pretrained model. With `keep`, of the points that keep this
    share (`within`), the most accurate. Without, of the points within one standard error of the most accurate, the one
    that keeps most (`Point.surely_kept`).
    """
    allowed = points if keep is None else within(before, points, keep)
    if keep is not None and not allowed:
        return Choice(before, f"no mixture is sure to keep {keep:g}: {_most(before, points)}")
    quantile = _quantile(len({each.trial for each in points}))
    better = [each for each in allowed if paired_interval(before.hits, each.hits, quantile).low > 0]
    images = f"{len(before.hits)} held-out images"
    if not better:
        condition = "" if keep is None else f" that is sure to keep {keep:g}"
        return Choice(
            before, f"nothing{condition} is better than the pretrained model on {images} beyond noise"
        )
    best = max(better, key=lambda each: (each.accuracy, each.surely_kept(before), each.caution))
    if keep is not None:
        return Choice(best, f"the most accurate on {images} that is sure to keep {keep:g}")
    gaps = [paired_interval(best.hits, each.hits) for each in better]
    near = [each for each, gap in zip(better, gaps, strict=True) if -gap.value <= gap.standard_error]
    chosen = max(near, key=lambda each: (each.surely_kept(before), each.accuracy, each.caution))
    reason = f"keeps most of the {len(near)} mixtures within one standard error of the best on {images}"
    return Choice(chosen, reason if chosen is not best else f"the best on {images}")


def within(before: Point, points: Sequence[Point], keep: float) -> list[Point]:
    """The points that keep at least this share of what `before` can do, with probability 1 − RISK for all together.

    Each trial is a family of its own: its path is followed from the pretrained model until the first mixture whose
    lower bound is below `keep` (a fixed sequence of tests, which needs no correction), and the risk is divided among
    the trials that could lose something.
    """
    paths: dict[str, list[Point]] = {}
    for each in sorted(points, key=lambda each: each.alpha):
        paths.setdefault(each.trial, []).append(each)
    quantile = _quantile(sum(not path[0].frozen for path in paths.values()))

    def safe(point: Point) -> bool:
        return point.retention_bound(before, quantile) >= keep

    return [each for path in paths.values() for each in takewhile(safe, path)]


def promoted(
    before: Point, paths: Mapping[str, Sequence[Point]], count: int, keep: float | None = None
) -> list[str]:
    """The trials that are trained longer: the one with the most accurate point, then those that add most area.

    Area is that under the points, accuracy above the pretrained model's times share kept. With `keep`, only points that
    keep so much (as measured) count. Of trials that add nothing, those with the largest area of their own are first.
    """

    def useful(name: str) -> list[tuple[float, float]]:
        values = [(each.accuracy - before.accuracy, each.retention(before)) for each in paths[name]]
        return [(gain, kept) for gain, kept in values if keep is None or kept >= keep]

    points = {name: useful(name) for name in paths}
    chosen: list[str] = []
    front: list[tuple[float, float]] = []
    while len(chosen) < min(count, len(paths)):
        rest = [name for name in paths if name not in chosen]
        if chosen:
            name = max(rest, key=lambda name: (area([*front, *points[name]]), area(points[name])))
        else:
            name = max(rest, key=lambda name: max(points[name], default=(-math.inf, 0.0)))
        chosen.append(name)
        front += points[name]
    return chosen


def area(points: Sequence[tuple[float, float]]) -> float:
    """The area between the axes and the points that no other surpasses (the hypervolume in two dimensions)."""
    total, reached = 0.0, 0.0
    for x, y in sorted(points, reverse=True):
        if x > 0 and y > reached:
            total += x * (y - reached)
            reached = y
    return total


def _quantile(trials: int) -> float:
    """That of the normal distribution at which RISK is divided among the trials (Bonferroni)."""
    return NormalDist().inv_cdf(1 - RISK / max(1, trials))


def _most(before: Point, points: Sequence[Point]) -> str:
    if not points:
        return "no trial has finished"
    images = ", ".join(f"{len(hits)} images of {name}" for name, hits in before.kept.items())
    most = max(each.retention_bound(before, NORMAL_QUANTILE) for each in points)
    return f"the highest lower bound of a single one is {most:.3f}, on {images}; more images in --retain raise it"
