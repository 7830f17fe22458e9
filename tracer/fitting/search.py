"""The search: direct finetuning climbs the learning rates, then other methods compete by successive halving.

Every trial is an ordinary run below `trials`. What has ended is not done again, so a search that was stopped goes on,
and several processes can share one: a lock on each trial keeps them apart, and what follows depends on scores alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracer.api.run import Machine
from tracer.api.terminal import percent
from tracer.core.errors import UserError
from tracer.core.metrics import wilson_interval
from tracer.evaluation.verdict import plus_minus
from tracer.fitting.budget import Schedule, Speed, Spent
from tracer.fitting.candidates import Candidate, cliff, climb, direct, ladder, most, without_rate
from tracer.fitting.choice import Choice, Point, choose, promoted
from tracer.fitting.parts import Parts
from tracer.fitting.trial import Trial
from tracer.runs.experiment import Experiment
from tracer.storage.lock import lock
from tracer.training.pace import time_text

Tell = Callable[[str], object]
PAUSE = 0.5  # seconds between two looks at trials of other processes


class OutOfTime(Exception):
    """The budget is spent."""


@dataclass
class Search:
    """Trials of one experiment in `folder`, until `deadline` on the monotonic clock."""

    base: Experiment
    parts: Parts
    folder: Path
    machine: Machine
    tell: Tell
    schedule: Schedule = field(init=False)
    before: Point = field(init=False)  # the pretrained model's answers
    keep: float | None = None
    deadline: float | None = None
    speed: Speed | None = None  # measured before the first trial, in a search with a deadline
    warning: str = ""  # about images that the model was trained on before
    again: str = ""  # how to search for longer
    trials: dict[str, Trial] = field(default_factory=dict)  # that have ended, by name
    paths: dict[str, list[Point]] = field(default_factory=dict)  # their mixtures
    spent: list[Spent] = field(default_factory=list)  # of those that have steps and did not fail

    @property
    def points(self) -> list[Point]:
        """The mixtures of all trials that have ended."""
        return [point for path in self.paths.values() for point in path]

    def best(self) -> Choice:
        """What would be chosen now."""
        return choose(self.before, self.points, self.keep)

    def start(self, steps: int) -> None:
        """Score the pretrained model, and a linear probe on its features; both take none of the `steps`."""
        for candidate in without_rate(self.parts.test.labelled):
            trial = self.trial(candidate, steps)
            self.complete([trial])
            if candidate.method == "zeroshot":
                if trial.failed:
                    raise UserError(trial.failure)
                self.before = trial.before()

    def run(self) -> None:
        """All trials of the schedule that the time allows; in time that is left then, whatever else can be tried."""
        others: tuple[Candidate, ...] = ()
        spent = False
        try:
            trials, shares = self._climb()
            collapse = cliff(shares)
            rate = min(collapse, max(shares))
            self.tell(
                f"Direct finetuning at {rate:g} keeps {shares[rate]:.0%}: other methods are tried around that rate."
            )
            others = ladder(self.parts.test.labelled, collapse)
            trials += [self.trial(candidate, self.schedule.steps[0]) for candidate in others]
            self._halve(trials[: self.schedule.trials[0]])
        except OutOfTime:
            spent = True
        if self.deadline is not None:
            self._fill(others)
            if spent or any(self._untried(steps, others) for steps in self.schedule.steps):
                self.tell("The budget is spent: the choice is made from what has been tried.")

    def _climb(self) -> tuple[list[Trial], dict[float, float]]:
        """Trials of direct finetuning at rising rates, and the share kept at each rate, until that collapses.

        They are at most half of the first rung.
        """
        trials: list[Trial] = []
        shares: dict[float, float] = {}
        most = max(1, self.schedule.trials[0] // 2)
        while len(trials) < most and (rate := climb(shares)) is not None:
            candidate = replace(direct(self.parts.test.labelled), lr=rate)
            trials.append(self.trial(candidate, self.schedule.steps[0]))
            self.complete(trials[-1:])
            path = self.paths[trials[-1].name]
            shares[rate] = path[-1].retention(self.before) if path else 0.0
        return trials, shares

    def _halve(self, trials: list[Trial]) -> None:
        """Train all, then those that `promoted` names for longer, rung by rung."""
        self.complete(trials)
        rungs = zip(self.schedule.steps[1:], self.schedule.trials[1:], strict=True)
        for steps, count in rungs:
            paths = {trial.name: self.paths[trial.name] for trial in trials if not trial.failed}
            chosen = promoted(self.before, paths, count, self.keep)
            trials = [self.trial(self.trials[name].candidate, steps) for name in chosen]
            self.complete(trials)

    def _fill(self, others: Sequence[Candidate]) -> None:
        """Try what fits into the time that is left: first what is longest, and most promising."""
        while batch := next(
            filter(None, (self._fitting(steps, others) for steps in self._longest_first)), None
        ):
            with suppress(OutOfTime):  # slower than expected: something shorter may fit
                self.complete(batch)

    @property
    def _longest_first(self) -> tuple[int, ...]:
        return self.schedule.steps[::-1]

    def _fitting(self, steps: int, others: Sequence[Candidate]) -> list[Trial]:
        """Those of the untried that have ended elsewhere or fit, one after another, into the time that is left."""
        assert self.deadline is not None
        left, fitting = self.deadline - time.monotonic(), []
        for trial in self._untried(steps, others):
            price = 0.0 if trial.ended else self._price(trial)
            if price <= max(0.0, left):
                fitting.append(trial)
                left -= price
        return fitting

    def _untried(self, steps: int, others: Sequence[Candidate]) -> list[Trial]:
        """What can be tried with so many steps: candidates that had fewer, the most promising first, then `others`.

        Others, which have not been tried at all, begin in the first rung.
        """
        ended = [trial for trial in self.all_trials() if trial.candidate.has_rate]
        longest = {trial.candidate.key: trial for trial in sorted(ended, key=lambda trial: trial.steps)}
        shorter = {trial.name: self.paths[trial.name] for trial in longest.values() if trial.steps < steps}
        order = promoted(self.before, shorter, len(shorter), self.keep)
        candidates = [self.trials[name].candidate for name in order]
        if steps == self.schedule.steps[0]:
            candidates += [each for each in others if each.key not in longest]
        trials = (self.trial(candidate, steps) for candidate in candidates)
        return [trial for trial in trials if trial.name not in self.trials]

    def trial(self, candidate: Candidate, steps: int) -> Trial:
        """The trial of a candidate with these steps; equal ones share a folder."""
        experiment = candidate.experiment(self.base, steps)
        return Trial(candidate, experiment, self.folder / "trials" / experiment.id)

    def complete(self, trials: Sequence[Trial]) -> None:
        """Carry out those that no other process works on, and wait for the rest."""
        waiting = list(trials)
        while waiting:
            for trial in waiting:
                with lock(self.folder / ".locks" / trial.name) as mine:
                    if mine and not trial.ended:
                        self._carry_out(trial)
                if trial.ended and trial.name not in self.trials:
                    self.trials[trial.name], self.paths[trial.name] = trial, trial.path(self.parts)
                    if trial.candidate.has_rate and not trial.failed:
                        self.spent.append(trial.spent)
                    self._say(trial)
            waiting = [trial for trial in waiting if trial.name not in self.trials]
            if waiting:
                self._in_time(0.0)
                time.sleep(PAUSE)

    def _carry_out(self, trial: Trial) -> None:
        self._in_time(self._price(trial))
        trial.carry_out(self.parts, self.machine, lambda report: self._in_time(0.0))

    def _price(self, trial: Trial) -> float:
        """The seconds that a trial is expected to take; 0 while nothing is known."""
        speed = self._speed()
        return trial.price(speed) if speed is not None else 0.0

    def _speed(self) -> Speed | None:
        """That of the trials so far; before the first, as it was measured."""
        return Speed.measured(self.spent) if self.spent else self.speed

    def _in_time(self, expected: float) -> None:
        """Raise OutOfTime if `expected` seconds from now are after the deadline."""
        if self.deadline is not None and time.monotonic() + expected > self.deadline:
            raise OutOfTime

    def _say(self, trial: Trial) -> None:
        number = f"Trial {len(self.trials)}"
        if trial.failed:
            self.tell(f"{number}: {trial}: left out. {trial.failure}")
            return
        if trial.candidate.method == "zeroshot":
            before = trial.before()
            counts = " and ".join(f"{sum(hits)} on {name}" for name, hits in before.kept.items())
            known = f"right answers ({counts})" if self.parts.retain else f"{len(before.hits)} ImageNet names"
            self.tell(f"{number}: pretrained: {_accuracy(before)} of {len(before.hits)} held-out images")
            self.tell(
                f"Below: the share right of these {len(before.hits)} images, and the share kept of the pretrained "
                f"model's {known}; ± or brackets are 95 % intervals."
            )
            return
        last = self.paths[trial.name][-1]
        kept = "all" if last.frozen else plus_minus(last.retention_interval(self.before))
        self.tell(f"{number}: {trial}: {_accuracy(last)}, keeps {kept}; {self._standing(last)}{self._left()}")

    def _standing(self, last: Point) -> str:
        """What would be chosen now, beside a trial that has just ended with `last`."""
        best = self.best().point
        if best.trial not in self.trials:
            sure = "" if self.keep is None else f" and sure to keep {self.keep:g}"
            return f"nothing is better than pretrained ({percent(best.accuracy)}) beyond noise{sure} yet"
        if best == last:
            return "best so far"
        if best.trial == last.trial:
            return f"best so far if mixed at α = {best.alpha:g} ({self._values(best)})"
        return f"best so far: {self.describe(best)}"

    def describe(self, point: Point) -> str:
        """A point in words."""
        if point.trial not in self.trials:
            return f"pretrained ({self._values(point)})"
        return f"{self.trials[point.trial].candidate}, α = {point.alpha:g} ({self._values(point)})"

    def _values(self, point: Point) -> str:
        return f"{percent(point.accuracy)}, keeps {percent(point.retention(self.before))}"

    def _left(self) -> str:
        """Time left for trials in words; after the last one, what comes next."""
        seconds = self.seconds_left()
        if seconds is None:
            return ""
        return f"; about {time_text(seconds)} of trials left" if seconds else "; next: the test of the choice"

    def seconds_left(self) -> float | None:
        """Until the deadline, or as long as all takes that can be tried; without a deadline, what is planned.

        None before a trial has ended that has steps; 0 if not even the shortest fits.
        """
        speed, done = (
            self._speed(),
            Counter(trial.steps for trial in self.trials.values() if trial.candidate.has_rate),
        )
        if speed is None or not done:
            return None
        if self.deadline is None:
            rungs = zip(self.schedule.steps, self.schedule.trials, strict=True)
            return sum(max(0, trials - done[steps]) * speed.trial(steps) for steps, trials in rungs)
        left = self.deadline - time.monotonic()
        if left < speed.trial(self.schedule.steps[0], 1.0):
            return 0.0
        full = self.schedule.steps[-1]
        return min(left, (most(self.parts.test.labelled) - done[full]) * speed.trial(full))

    def all_trials(self) -> Iterator[Trial]:
        """Every trial that has ended well."""
        return (trial for trial in self.trials.values() if not trial.failed)


def _accuracy(point: Point) -> str:
    return plus_minus(wilson_interval(point.accuracy, len(point.hits)))
