"""The sentence at the end of a command: bad news first, no claim from noise, no export of a model that got worse."""

from __future__ import annotations

from pathlib import Path

from tracer.cli.training import next_step
from tracer.core.metrics import Interval, wilson_interval
from tracer.evaluation.verdict import Change, Verdict, plus_minus, verdict


def change(n: int, before: int, after: int, kept: int) -> Change:
    """`before` right of n, `after` right of n, `kept` of them in both."""
    first = [True] * before + [False] * (n - before)
    second = [True] * kept + [False] * (before - kept) + [True] * (after - kept)
    return Change.of(first, second + [False] * (n - len(second)))


def test_a_clear_gain_and_a_small_loss() -> None:
    outcome = Verdict(change(300, 90, 240, 85), {"old": change(200, 129, 113, 110)})
    assert outcome.sentence().startswith("Task gained 50.0 ± ")
    assert "30.0 → 80.0 % of 300 held-out images" in outcome.sentence()
    assert "old lost 8.0 ± " in outcome.sentence()
    assert not outcome.bad
    assert next_step(outcome, Path("runs/x")) == "tracer export runs/x"


def test_noise_is_called_noise() -> None:
    outcome = Verdict(change(300, 150, 153, 140), {})
    assert "within noise" in outcome.sentence()
    assert outcome.no_gain
    assert "export" not in next_step(outcome, Path("runs/x"))
    few = Verdict(change(10, 3, 5, 3), {})
    assert "too few to tell" in few.sentence()


def test_the_same_answers_are_no_noise() -> None:
    same = Verdict(change(64, 8, 8, 8), {})
    assert same.sentence() == "Task unchanged: no image gained or lost (12.5 → 12.5 % of 64 held-out images)."
    assert "+0.0 ± " in Verdict(change(64, 8, 8, 7), {}).sentence()
    assert verdict({"changes": {"task": same.task.to_json(), "retain": {}}}) == same


def test_a_worse_task_and_a_collapse_come_first_and_are_not_exported() -> None:
    worse = Verdict(change(300, 300, 100, 100), {})
    assert worse.bad
    assert worse.sentence().startswith("Task collapsed by") or worse.sentence().startswith("Task lost")
    collapse = Verdict(change(300, 90, 240, 90), {"old": change(200, 150, 20, 20)})
    assert collapse.bad
    assert collapse.sentence().startswith("Old collapsed by 65.0 ± ")
    for outcome in (worse, collapse):
        assert "export" not in next_step(outcome, Path("runs/x"))
        assert "merge runs/x" in next_step(outcome, Path("runs/x"))
        assert next_step(outcome, Path("runs/x")).endswith("or train again with a lower --lr")
        moved = next_step(outcome, Path("runs/x"), statistics_moved=True)
        assert moved.endswith("or train again with --batchnorm keep")


def test_results_are_read_back_and_old_ones_have_no_verdict() -> None:
    task = change(300, 90, 240, 85)
    result = {"changes": {"task": task.to_json(), "retain": {"old": task.to_json()}}}
    assert verdict(result) == Verdict(task, {"old": task})
    assert verdict({"before": {}, "after": {}}) is None


def test_a_share_near_its_limit_is_shown_with_both_bounds() -> None:
    assert plus_minus(Interval(0.62, 0.68, 0.73)) == "68.0 ± 5.5 %"
    assert plus_minus(wilson_interval(1.0, 3)) == "100.0 [43.9, 100.0] %"
    assert plus_minus(wilson_interval(0.0, 20)) == "0.0 [0.0, 16.1] %"


def test_what_is_not_the_task_is_not_called_so() -> None:
    outcome = Verdict(change(300, 300, 100, 100), {}, "accuracy on other/photos")
    assert outcome.sentence("images").startswith("Accuracy on other/photos collapsed by 66.7 ± ")
