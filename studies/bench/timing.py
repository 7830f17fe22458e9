"""Interleaved timing: other load on the machine affects all pieces of work alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

Work = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each piece of work, by round."""

    seconds: dict[str, list[float]]

    def median(self, name: str) -> float:
        return median(self.seconds[name])

    def ratio(self, name: str, reference: str) -> float:
        """Median over rounds of the ratio of the two times of a round."""
        return median(self.ratios(name, reference))

    def ratios(self, name: str, reference: str) -> list[float]:
        pairs = zip(self.seconds[name], self.seconds[reference], strict=True)
        return [ours / theirs for ours, theirs in pairs]


@dataclass(frozen=True)
class Timer:
    """Times pieces of work A, B, … and then in reverse order, alternately, after `warmup` rounds that do not count."""

    rounds: int = 5
    clock: Callable[[], float] = perf_counter

    def __call__(self, works: Mapping[str, Work], warmup: int = 1) -> Times:
        seconds: dict[str, list[float]] = {name: [] for name in works}
        for index in range(warmup + self.rounds):
            names = [*works] if index % 2 == 0 else [*works][::-1]
            for name in names:
                started = self.clock()
                works[name]()
                if index >= warmup:
                    seconds[name].append(self.clock() - started)
        return Times(seconds)

    def scaled(self, share: float) -> Timer:
        """A timer with `share` times as many rounds, at least two, one in each order."""
        return replace(self, rounds=max(2, round(share * self.rounds)))
