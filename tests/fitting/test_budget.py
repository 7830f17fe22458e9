"""What a budget allows: never more than it says, and as much as fits."""

from __future__ import annotations

import pytest

from tracer.core.errors import UserError
from tracer.fitting.budget import (
    MIN_STEPS,
    USABLE,
    Budget,
    Speed,
    budget_text,
    doubled,
    lengths,
    planned,
    schedule,
)
from tracer.fitting.candidates import RATES, cliff, climb


def test_a_budget_is_a_time_or_a_number_of_runs() -> None:
    assert Budget.parse("30m") == Budget(seconds=1800)
    assert Budget.parse("1.5h") == Budget(seconds=5400)
    assert Budget.parse("20-runs") == Budget(runs=20)
    for text in ("30", "half an hour", "0m", "1-runs", "-3m"):
        with pytest.raises(UserError, match=f"--budget {text}"):
            Budget.parse(text)


def test_a_whole_number_from_python_is_that_many_runs() -> None:
    assert [budget_text(each) for each in (3, "2h")] == ["3-runs", "2h"]
    for value in (2.5, None, True, ["2h"]):
        with pytest.raises(UserError, match="expected a time such as 30m or 2h, or a number of runs"):
            budget_text(value)


def test_a_doubled_budget_is_a_budget() -> None:
    for text in ("30m", "1.5h", "20-runs", "2.5-runs"):
        first, second = (Budget.parse(each) for each in (text, doubled(text)))
        assert (second.seconds or second.runs) == 2 * (first.seconds or first.runs or 0)


def test_rungs_are_a_ninth_a_third_and_all_of_the_steps() -> None:
    assert lengths(900) == (100, 300, 900)
    assert lengths(45) == (MIN_STEPS, 15, 45)
    assert lengths(MIN_STEPS) == (MIN_STEPS,)


@pytest.mark.parametrize("runs", [2, 3, 5, 10, 20, 60])
def test_the_work_of_all_trials_is_within_the_runs(runs: float) -> None:
    plan = planned(Budget(runs=runs), Speed(0, 0), 900, 46)
    work = sum(steps * trials for steps, trials in zip(*plan, strict=True)) / 900
    assert work <= runs
    assert list(plan.trials) == sorted(plan.trials, reverse=True)
    if runs <= 15:  # one more trial a rung would be too much
        assert work + (100 + 300 + 900) / 900 > runs


def test_ten_runs_are_27_trials_and_what_is_left_goes_to_the_longest() -> None:
    assert schedule(900, 9, lambda steps: steps / 900, 99).trials == (27, 9, 3)  # pyright: ignore
    assert schedule(900, 10, lambda steps: steps / 900, 27).trials == (27, 9, 4)  # pyright: ignore
    assert schedule(900, 1, lambda steps: steps / 900, 27) is None


def test_a_short_budget_of_time_has_fewer_and_shorter_trials() -> None:
    speed = Speed(1.0, 45.0)
    long, short = (planned(Budget(seconds=s), speed, 900, 46) for s in (200_000, 5_000))
    assert long.steps[-1] == 900
    assert short.steps[-1] < 900
    assert short.trials[0] >= 18 * short.steps[-1] / 900
    assert short.trials[0] < 18
    assert short.total(speed.trial) <= USABLE * 5_000 - 45
    with pytest.raises(UserError, match=r"too short: .* --budget \d+m or more"):
        planned(Budget(seconds=60), Speed(30.0, 60.0), 900, 46)


def test_rates_are_climbed_until_what_was_known_collapses() -> None:
    """Kept 0.99 up to 1e-4 and 0.2 from 3e-4 on: the climb stops there, and nothing above is tried."""
    tried: dict[float, float] = {}
    while (rate := climb(tried)) is not None:
        tried[rate] = 0.99 if rate < 3e-4 else 0.2
    assert list(tried) == [1e-5, 1e-4, 1e-3, 3e-4]
    assert cliff(tried) == 3e-4
    # Not met yet: other methods begin at the highest rate that kept what was known.
    assert cliff({1e-5: 0.99, 1e-4: 0.99}) == 3e-4


@pytest.mark.parametrize(("kept", "last"), [(1.0, RATES[-1]), (0.0, RATES[0])])
def test_a_climb_ends_where_rates_do(kept: float, last: float) -> None:
    tried: dict[float, float] = {}
    while (rate := climb(tried)) is not None:
        tried[rate] = kept
    assert list(tried)[-1] == last
    assert cliff(tried) == last
