"""The arithmetic of a budget of time, on a clock that only trials move: c seconds each, and s for a step."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from tracer.fitting import search as module
from tracer.fitting.budget import MIN_STEPS, USABLE, Budget, Speed, Spent, planned
from tracer.fitting.candidates import Candidate, most
from tracer.fitting.choice import Point
from tracer.fitting.fit import spent_before
from tracer.fitting.search import Search
from tracer.fitting.trial import Trial
from tracer.runs.experiment import Experiment


class Clock:
    """Time that passes where work is done; the test sets what a step and all else take."""

    def __init__(self, step: float, other: float) -> None:
        self.now, self.step, self.other = 100.0, step, other
        self.ended: dict[str, dict[str, Any]] = {}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Timed(Trial):
    """A trial that moves the clock by what it takes and keeps its scores there; more steps learn more."""

    def carry_out(self, parts: object, machine: object, observe: Any) -> None:
        clock = cast(Clock, machine)
        training = self.steps * self.candidate.cost * clock.step
        clock.now += training + clock.other
        clock.ended[self.name] = {"training": training, "other": clock.other}

    @property
    def ended(self) -> bool:
        return self.name in CLOCK[-1].ended

    def read(self) -> dict[str, Any]:
        return CLOCK[-1].ended[self.name]

    def path(self, parts: object) -> list[Point]:
        right = min(19, 10 + self.steps // 10 + len(self.candidate.method) % 3)
        return [Point(self.name, 1.0, [True] * right + [False] * (20 - right), {"old": [True] * 20})]


CLOCK: list[Clock] = []  # of the search that runs


def searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float, full: int, believed: Speed
) -> tuple[Search, list[str], float]:
    """A search with a budget of time that has just begun, what it said, and when its test of the choice ended."""
    CLOCK.append(clock)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "Trial", Timed)
    lines: list[str] = []
    parts = cast(Any, type("Parts", (), {"test": type("Test", (), {"labelled": True})}))
    began, budget = clock.now, Budget(seconds=seconds)
    search = Search(Experiment(data="photos"), parts, folder, cast(Any, clock), lines.append)
    search.before = Point("pretrained", 0.0, [True] * 10 + [False] * 10, {"old": [True] * 20})
    search.speed = believed
    search.schedule = planned(budget, believed, full, most(labelled=True))
    search.deadline = began + budget.usable(believed)
    search.run()
    return search, lines, clock.now + clock.other - began


def test_a_price_is_a_constant_and_the_steps() -> None:
    assert Speed(0.2, 28.0).trial(60, 1.5) == pytest.approx(0.2 * 1.5 * 60 + 28)
    assert Speed(0.2, 28.0).trial(600, 1.0) - Speed(0.2, 28.0).trial(10, 1.0) == pytest.approx(0.2 * 590)
    trial = Trial(Candidate("ft"), Experiment(data="photos", steps=60), Path("a"))
    assert trial.price(Speed(0.2, 28.0)) == pytest.approx(0.2 * 60 + 28)
    probe = Trial(Candidate("lp"), Experiment(data="photos", steps=60), Path("a"))
    assert probe.price(Speed(0.2, 28.0)) == 28.0


def test_another_budget_is_a_search_that_begins_now() -> None:
    """The trials of 30 minutes are not paid again by the 60 that are advised after them, nor by fewer."""
    plan = {"budget": "30m", "full": 60, "earlier": 100.0}
    assert spent_before(plan, "30m", 60, 900.0) == 100.0  # the same goes on: 800 s are its own
    assert spent_before(plan, "60m", 60, 900.0) == 900.0
    assert spent_before(plan, "20m", 60, 900.0) == 900.0
    assert spent_before({}, "30m", 60, 0.0) == 0.0


def test_a_budget_that_ends_in_the_first_trials_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slower by far than was believed: nothing but the first trials was trained."""
    _, lines, _ = searched(tmp_path, monkeypatch, Clock(20.0, 28.0), 300.0, 60, Speed(0.2, 28.0))
    assert lines[-1].startswith("The budget is spent")


def test_speed_is_learned_from_what_trials_took() -> None:
    """Whatever their steps were: a short trial does not make the constant cost look like one of steps."""
    truth = Speed(0.25, 30.0)
    spent = [Spent(work, truth.step * work, truth.overhead) for work in (10, 10, 60, 100)]
    assert Speed.measured(spent[:1]) == Speed.measured(spent) == truth


@pytest.mark.parametrize("seconds", [300.0, 3600.0])
@pytest.mark.parametrize(("step", "other"), [(0.2, 28.0), (1.0, 5.0), (0.01, 10.0)])
@pytest.mark.parametrize("full", [MIN_STEPS, 60, 400])
def test_the_plan_costs_what_the_formula_says(seconds: float, step: float, other: float, full: int) -> None:
    speed = Speed(step, other)
    plan = planned(Budget(seconds=seconds), speed, full, 46)
    price = sum(count * (steps * step * 1.4 + other) for steps, count in zip(*plan, strict=True))
    assert plan.total(speed.trial) == pytest.approx(price)
    assert price <= USABLE * seconds - other
    less = planned(Budget(seconds=seconds), speed, full, 46, gone=seconds / 3)
    assert less.total(speed.trial) <= USABLE * seconds - other - seconds / 3


@pytest.mark.parametrize("believed", [0.5, 2.0], ids=lambda factor: f"believed {factor:g}")
@pytest.mark.parametrize(
    ("seconds", "step", "other", "full"),
    [(300.0, 0.2, 28.0, 60), (300.0, 1.0, 5.0, 60), (600.0, 0.05, 20.0, 400), (600.0, 0.5, 2.0, 900)],
)
def test_a_search_uses_its_budget_and_no_more(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: float,
    other: float,
    full: int,
    seconds: float,
    believed: float,
) -> None:
    """At least 80 % unless everything is trained in full, and whatever was believed of a step before."""
    clock = Clock(step, other)
    search, _, took = searched(tmp_path, monkeypatch, clock, seconds, full, Speed(step * believed, other))
    assert took <= seconds
    at_full = [trial for trial in search.trials.values() if trial.steps == full]
    everything = len(at_full) >= len({trial.candidate.key for trial in search.trials.values()})
    cheapest = step * search.schedule.steps[0] + other
    assert everything or took >= min(0.8 * seconds, USABLE * seconds - 2 * cheapest)


def test_five_minutes_train_one_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 30 s for ten steps 28 are not training: so 60 steps take 40, and not 180."""
    search, lines, took = searched(tmp_path, monkeypatch, Clock(0.2, 28.0), 300.0, 60, Speed(0.2, 28.0))
    assert 240 <= took <= 300
    assert 60 in {trial.steps for trial in search.trials.values()}
    assert lines[-1].startswith("The budget is spent")


@pytest.mark.parametrize("believed", [1.0, 4.0])
def test_time_left_does_not_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, believed: float) -> None:
    """Each trial takes off what it took, whatever was believed before the first."""
    clock, seen = Clock(0.2, 28.0), list[tuple[float, float | None]]()
    left = Search._left
    monkeypatch.setattr(
        Search, "_left", lambda self: seen.append((clock.now, self.seconds_left())) or left(self)
    )
    searched(tmp_path, monkeypatch, clock, 900.0, 60, Speed(0.2 * believed, 28.0))
    assert len(seen) > 10
    for (first, before), (second, after) in pairwise(seen):
        assert before is not None
        assert after is not None
        assert after == 0 or before - after == pytest.approx(second - first)
    assert seen[-1][1] == 0, "nothing more fits"


def test_what_was_tried_in_left_time_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command gives the same trials, though its time has passed."""
    first, _, _ = searched(tmp_path, monkeypatch, Clock(0.2, 28.0), 300.0, 60, Speed(0.2, 28.0))
    clock, ended = Clock(0.2, 28.0), CLOCK[-1].ended
    clock.ended = ended
    monkeypatch.setattr(Budget, "usable", lambda *_: 0.0)
    monkeypatch.setattr(f"{__name__}.planned", lambda *_: first.schedule)
    again, _, _ = searched(tmp_path, monkeypatch, clock, 300.0, 60, Speed(0.2, 28.0))
    assert again.trials.keys() == first.trials.keys()
    assert clock.now == 100.0


@pytest.mark.parametrize("runs", [2.0, 3.0, 10.0])
def test_a_number_of_runs_is_the_steps_of_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: float
) -> None:
    """Whatever the seconds are: it has no deadline, and nothing fills it."""
    clock, full = Clock(0.2, 28.0), 90
    CLOCK.append(clock)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "Trial", Timed)
    parts = cast(Any, type("Parts", (), {"test": type("Test", (), {"labelled": True})}))
    search = Search(Experiment(data="photos"), parts, tmp_path, cast(Any, clock), lambda line: None)
    search.before = Point("pretrained", 0.0, [True] * 10 + [False] * 10, {"old": [True] * 20})
    search.schedule = planned(Budget(runs=runs), Speed(0.0, 0.0), full, most(labelled=True))
    search.run()
    steps = [trial.steps for trial in search.trials.values()]
    assert sum(steps) / full <= runs
    assert sum(steps) / full > runs - 1
    assert steps.count(full) == search.schedule.trials[-1] >= 1
