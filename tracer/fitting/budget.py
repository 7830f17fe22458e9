"""The budget of a search, and how many trials of which length it allows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
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
# Share of a budget of time that is planned with, the test of the choice included; the rest is for what takes longer.
USABLE = 0.95


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
        """Seconds of a budget of time until the choice is made; its test takes as long as all else in a trial."""
        return USABLE * (self.seconds or math.inf) - speed.overhead


class Spent(NamedTuple):
    """What a trial took: its steps, in those of direct finetuning, their seconds, and the seconds of all else."""

    work: float
    training: float
    other: float


class Speed(NamedTuple):
    """Seconds of a step of direct finetuning, and of all else in a trial, however long: its start, scores, mixtures."""

    step: float
    overhead: float

    @classmethod
    def measured(cls, trials: Sequence[Spent]) -> Speed:
        """That of trials which have steps."""
        step = sum(each.training for each in trials) / sum(each.work for each in trials)
        return cls(step, sum(each.other for each in trials) / len(trials))

    def trial(self, steps: float, cost: float = AVERAGE_COST) -> float:
        """Seconds of a trial whose method takes `cost` times as long for a step as direct finetuning.

        Every price in a search is this one.
        """
        return steps * self.step * cost + self.overhead

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


def planned(budget: Budget, speed: Speed, full: int, most: int, gone: float = 0.0) -> Schedule:
    """The trials that a budget allows, of at most `full` steps each; `gone` seconds of it are spent.

    Where a budget of time does not allow ENOUGH trials of that length, they become shorter and fewer in equal measure:
    many trials of a few steps would all be undertrained, and one long one could be past the cliff. They do so until
    all else takes as long as the steps: still shorter ones would be hardly cheaper.
    """
    if budget.runs is not None:
        result = schedule(full, budget.runs, partial(Speed(1 / full, 0.0).trial, cost=1.0), most)
        assert result is not None  # FEWEST_RUNS allow one trial a rung
        return result
    limit, steps = budget.usable(speed) - gone, full
    while True:
        result = schedule(steps, limit, speed.trial, most)
        enough = result is not None and result.trials[0] >= ENOUGH * steps / full
        cheap = result is not None and speed.trial(steps) <= 2 * speed.overhead
        if enough or cheap or steps <= MIN_STEPS:
            break
        steps = max(MIN_STEPS, int(steps / 1.2))
    if result is None:
        minutes = math.ceil((gone + speed.overhead + 3 * speed.trial(MIN_STEPS)) / 60 / USABLE)
        raise UserError(f"the budget is too short: {speed}; give --budget {minutes}m or more")
    return result
