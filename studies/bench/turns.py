"""Times of several pieces of work, taken in turns: whatever else the machine does falls on all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

Work = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each piece of work, one for each round."""

    seconds: dict[str, list[float]]

    def median(self, name: str) -> float:
        return median(self.seconds[name])

    def ratio(self, name: str, reference: str) -> float:
        """Median over rounds of the ratio of two times that were taken one after the other."""
        return median(self.ratios(name, reference))

    def ratios(self, name: str, reference: str) -> list[float]:
        pairs = zip(self.seconds[name], self.seconds[reference], strict=True)
        return [ours / theirs for ours, theirs in pairs]


@dataclass(frozen=True)
class Turns:
    """A, B, … then …, B, A: both orders by turns, after `warmup` rounds that do not count."""

    rounds: int = 5
    clock: Callable[[], float] = perf_counter

    def __call__(self, works: Mapping[str, Work], warmup: int = 1) -> Times:
        seconds: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(warmup + self.rounds):
            names = [*works] if turn % 2 == 0 else [*works][::-1]
            for name in names:
                started = self.clock()
                works[name]()
                if turn >= warmup:
                    seconds[name].append(self.clock() - started)
        return Times(seconds)

    def scaled(self, share: float) -> Turns:
        """More rounds of what is quick, fewer of what is slow; two at least, one in each order."""
        return replace(self, rounds=max(2, round(share * self.rounds)))
