"""The budget of a search, and how many trials of which length it allows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from numbers import Integral
from typing import NamedTuple

from tracer.core.errors import UserError

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FACTOR = 3  # each rung trains a third of the trials three times as long
RUNGS = 3
MIN_STEPS = 10  # of a trial; shorter ones do not tell methods apart
FEWEST_RUNS = 2  # full finetunings that a search needs
ENOUGH = 18  # trials of the first rung, if they have full length
AVERAGE_COST = 1.4  # of a step, relative to direct finetuning, over the methods that are tried
# Share of a budget of time that is planned with; the rest is for the choice, its test and the page.
USABLE = 0.9


FORMS = "a time such as 30m or 2h, or a number of runs such as 20-runs"


def budget_text(value: object) -> str:
    """A budget given from Python as the text that `Budget.parse` reads: a whole number is that many runs."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return f"{value}-runs"
    raise UserError(f"budget={value!r}: expected {FORMS}, or a whole number of runs")


def doubled(text: str) -> str:
    """The text of a budget that is twice as large."""
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", text).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return f"{2 * float(number):.12g}{unit}"


class Budget(NamedTuple):
    """Time in seconds, or a number of full finetunings."""

    seconds: float | None = None
    runs: float | None = None

    @classmethod
    def parse(cls, text: str) -> Budget:
        """The budget of a text such as 30m, 2h or 20-runs."""
        if match := re.fullmatch(r"(\d+(?:\.\d+)?)-runs?", text):
            if float(match[1]) < FEWEST_RUNS:
                raise UserError(f"--budget {text} is too small: give {FEWEST_RUNS}-runs or more")
            return cls(runs=float(match[1]))
        if (match := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)) and float(match[1]) > 0:
            return cls(seconds=float(match[1]) * UNITS[match[2]])
        raise UserError(f"--budget {text}: expected {FORMS}")

    def usable(self, speed: Speed) -> float:
        """Seconds of a budget of time in which trials may run."""
        return USABLE * (self.seconds or math.inf) - speed.overhead


class Speed(NamedTuple):
    """Measured seconds of a step of direct finetuning, and of all else in a trial: its start, scores and mixtures."""

    step: float
    overhead: float

    def trial(self, steps: float) -> float:
        """Seconds of a trial of an average method."""
        return steps * self.step * AVERAGE_COST + self.overhead

    def __str__(self) -> str:
        return f"a step takes about {self.step:.2g} s, and all else in a trial {self.overhead:.2g} s"


class Schedule(NamedTuple):
    """Steps of the trials in each rung, and the number of trials in it."""

    steps: tuple[int, ...]
    trials: tuple[int, ...]

    def total(self, price: Callable[[int], float]) -> float:
        """The price of all trials, given that of one trial by its steps."""
        return sum(trials * price(steps) for steps, trials in zip(*self, strict=True))


def lengths(full: int) -> tuple[int, ...]:
    """Steps of the trials in each rung, the last of them `full`."""
    shorter = [max(MIN_STEPS, round(full / FACTOR**k)) for k in range(RUNGS - 1, 0, -1)]
    return (*(steps for steps in dict.fromkeys(shorter) if steps < full), full)


def schedule(full: int, limit: float, price: Callable[[int], float], most: int) -> Schedule | None:
    """As many of `most` trials as cost no more than `limit`; a third of each rung goes on to the next, and is the best.

    What is left over trains more of them longer, the last rung first. None if not even one trial a rung is affordable.
    """
    steps = lengths(full)

    def counts(first: int) -> tuple[int, ...]:
        return tuple(max(1, math.ceil(first / FACTOR**k)) for k in range(len(steps)))

    def affordable(trials: tuple[int, ...]) -> bool:
        return Schedule(steps, trials).total(price) <= limit

    firsts = [first for first in range(1, most + 1) if affordable(counts(first))]
    if not firsts:
        return None
    trials = counts(firsts[-1])
    for rung in range(len(steps) - 1, 0, -1):
        while trials[rung] < trials[rung - 1]:
            more = (*trials[:rung], trials[rung] + 1, *trials[rung + 1 :])
            if not affordable(more):
                break
            trials = more
    return Schedule(steps, trials)


def planned(budget: Budget, speed: Speed, full: int, most: int) -> Schedule:
    """The trials that a budget allows, of at most `full` steps each.

    Where a budget of time does not allow ENOUGH trials of that length, they become shorter and fewer in equal measure:
    many trials of a few steps would all be undertrained, and one long one could be past the cliff.
    """
    if budget.runs is not None:
        result = schedule(full, budget.runs, lambda steps: steps / full, most)
        assert result is not None  # FEWEST_RUNS allow one trial a rung
        return result
    assert budget.seconds is not None
    usable = budget.usable(speed)
    steps = full
    while True:
        result = schedule(steps, usable, speed.trial, most)
        if (result is not None and result.trials[0] >= ENOUGH * steps / full) or steps <= MIN_STEPS:
            break
        steps = max(MIN_STEPS, int(steps / 1.2))
    if result is None:
        minutes = math.ceil(3 * speed.trial(MIN_STEPS) / 60 / USABLE)
        raise UserError(f"the budget is too short: {speed}; give --budget {minutes}m or more")
    return result
