"""Times of several pieces of work, taken in turns: whatever else the machine does falls on all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def in_turns(works: Mapping[str, Work], rounds: int = 5, warmup: int = 1) -> Times:
    """A, B, … then …, B, A: both orders by turns, after `warmup` rounds that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warmup + rounds):
        names = [*works] if turn % 2 == 0 else [*works][::-1]
        for name in names:
            started = perf_counter()
            works[name]()
            if turn >= warmup:
                seconds[name].append(perf_counter() - started)
    return Times(seconds)
