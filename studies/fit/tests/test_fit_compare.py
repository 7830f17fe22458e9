"""Regret and area of each way to a model, on a table made by hand."""

from __future__ import annotations

import pytest

from studies.fit.compare import Reached, Scored, promises
from studies.fit.table import table


def row(trial: str, method: str, lr: float, alpha: float, held_out: float, test: int, kept: int) -> dict:
    return {
        "trial": trial,
        "method": method,
        "lr": lr,
        "steps": 60,
        "alpha": alpha,
        "held_out": held_out,
        "searched": trial != "b",
        "gridded": trial in "ab",
        "test": [test // 2, test // 2],
        "kept": [kept // 2, kept // 2],
    }


RESULT = {
    "task": "colours",
    "seed": 0,
    "rates": [3e-4, 1e-3],
    "grid": 100,
    "held_out": 50,
    "n": [50, 50],
    "m": [50, 50],
    "before": {"test": [25, 25], "kept": [40, 40]},
    "points": [
        row("a", "ft", 3e-4, 0.5, 0.7, 70, 76),
        row("a", "ft", 3e-4, 1.0, 0.8, 80, 40),
        row("b", "ft", 1e-3, 1.0, 0.9, 90, 8),
        row("c", "lipsum", 3e-4, 1.0, 0.8, 78, 72),
    ],
    "chosen": {"None": ["c", 1.0], "0.9": ["c", 1.0], "0.95": ["a", 0.5], "0.97": ["pretrained", 0.0]},
}


def regrets(reached: Reached) -> tuple[float, float, float]:
    return reached.task_regret, reached.kept_regret, reached.point_regret


def test_regret_is_the_distance_to_the_front_in_hindsight() -> None:
    ways = Scored(RESULT).compared()
    assert ways["fit"][:2] == pytest.approx((0.78, 0.9))
    assert regrets(ways["fit"]) == pytest.approx((0.0, 0.0, 0.0))
    assert regrets(ways["ft, default"])[:2] == pytest.approx((0.0, 0.0))  # the most accurate that keeps half
    assert ways["ft, default"].point_regret == pytest.approx(0.78 * 0.9 - 0.8 * 0.5)
    assert ways["ft, default, α = 0.5"][:2] == pytest.approx((0.7, 0.95))
    assert ways["ft, rate by accuracy"][:2] == pytest.approx((0.9, 0.1))
    assert ways["ft, rate by accuracy, α = 0.5"] == ways["pretrained"]  # b has no mixture here
    assert ways["pretrained"][:2] == (0.5, 1.0)
    assert ways["fit --keep 0.95"][:2] == pytest.approx((0.7, 0.95))
    whole = 0.5 * 0.05 + 0.7 * 0.05 + 0.78 * 0.4 + 0.8 * 0.4 + 0.9 * 0.1
    assert ways["fit"].area == pytest.approx(0.78 * 0.9 / whole)
    assert ways["fit"].front == pytest.approx(1 - 0.1 * 0.1 / whole)  # b is not of the search
    own = 0.5 * 0.05 + 0.7 * 0.45 + 0.8 * 0.5  # the pretrained model, α = 0.5 and α = 1
    assert ways["ft, default"].front == ways["ft, default, α = 0.5"].front == pytest.approx(own / whole)


def test_a_worse_mixture_has_regret_on_both_axes() -> None:
    worse = {**RESULT, "points": [*RESULT["points"], row("d", "tracer", 3e-4, 1.0, 0.6, 60, 56)]}
    assert regrets(Scored(worse).compared()["tracer, default"])[:2] == pytest.approx((0.18, 0.25))


def test_luck_on_one_half_of_the_test_images_is_no_regret() -> None:
    """A mixture that is better on one half and as much worse on the other is the best only in hindsight."""
    lucky = {**row("d", "tracer", 3e-4, 1.0, 0.8, 78, 72), "test": [45, 33]}

    def fit(*more: dict) -> Reached:
        return Scored({**RESULT, "points": [*RESULT["points"], *more]}).compared()["fit"]

    assert fit(lucky).task_regret == pytest.approx((-0.12 + 0.0) / 2)
    even = {**lucky, "test": [42, 36]}
    assert fit(even).task_hindsight == pytest.approx(0)


def test_what_is_learnt_anew_is_not_kept() -> None:
    more = row("d", "tracer", 3e-4, 1.0, 0.8, 78, 96)
    assert Scored({**RESULT, "points": [more]}).place(more) == (0.78, 1.0)


def test_a_promise_counts_as_kept_where_the_start_was_not_left() -> None:
    assert promises([RESULT]) == {0.9: (1, 1, 1, 1), 0.95: (1, 1, 1, 1), 0.97: (1, 1, 0, 0)}
    broken = {**RESULT, "chosen": {**RESULT["chosen"], "0.97": ["a", 1.0]}}
    assert promises([RESULT, broken])[0.97] == (2, 1, 1, 1)
    assert "| fit | 1 |" in table([RESULT])


def test_seeds_of_a_task_are_averaged_before_the_interval_over_tasks() -> None:
    """Two tasks with areas of a and b over three seeds: ± is that of two values, not of six."""
    task = {**RESULT, "task": "shapes", "chosen": {**RESULT["chosen"], "None": ["b", 1.0]}}
    once, thrice = table([RESULT, task]), table([RESULT, task] * 3)

    def cells(text: str) -> list[str]:
        return next(line for line in text.splitlines() if line.startswith("| fit |")).split(" | ")

    accuracy = 5
    assert cells(once)[accuracy] == "84.0 ± 76.2"  # 78 and 90, t of one degree of freedom
    assert cells(thrice)[accuracy] == "84.0 ± 76.2 [± 0.0]"  # equal seeds
    assert (cells(once)[1], cells(thrice)[1]) == ("2", "6")
    assert cells(once)[-1].startswith("0.0 ± 0.0")  # its own area, paired


def test_only_a_loss_on_both_axes_is_worse_than_pretrained() -> None:
    forgets = {**RESULT, "chosen": {**RESULT["chosen"], "None": ["b", 1.0]}}
    both = {**RESULT, "points": [row("b", "ft", 1e-3, 1.0, 0.3, 20, 8)], "chosen": forgets["chosen"]}
    assert [Scored(each).worse for each in (RESULT, forgets, both)] == [False, False, True]


def test_the_search_is_compared_with_a_large_grid_above_the_pretrained_model() -> None:
    searched = 0.2 * 0.05 + 0.28 * 0.4 + 0.3 * 0.5
    grid = 0.2 * 0.45 + 0.3 * 0.4 + 0.4 * 0.1
    assert Scored(RESULT).coverage() == pytest.approx(searched / grid)
    assert "of a grid of 100 runs" in table([RESULT], [RESULT])
