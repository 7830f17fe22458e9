"""Regret and area of each way to a model, on a table made by hand."""

from __future__ import annotations

import pytest

from studies.fit.command import table
from studies.fit.compare import Scored, compared, promises, worse_than_pretrained


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


def test_regret_is_the_distance_to_the_front_in_hindsight() -> None:
    (ways,) = compared([RESULT])
    assert ways["fit"][:2] == pytest.approx((0.78, 0.9))
    assert ways["fit"][3:6] == pytest.approx((0.0, 0.0, 0.0))
    assert ways["ft at 0.0003"][3:5] == pytest.approx((0.0, 0.0))  # the most accurate that keeps half
    assert ways["ft at 0.0003"].point_regret == pytest.approx(0.78 * 0.9 - 0.8 * 0.5)
    assert ways["ft, rate by accuracy"][:2] == pytest.approx((0.9, 0.1))
    assert ways["ft, rate by accuracy, α = 0.5"] == ways["pretrained"]  # b has no mixture here
    assert ways["pretrained"][:2] == (0.5, 1.0)
    assert ways["fit --keep 0.95"][:2] == pytest.approx((0.7, 0.95))
    whole = 0.5 * 0.05 + 0.7 * 0.05 + 0.78 * 0.4 + 0.8 * 0.4 + 0.9 * 0.1
    assert ways["fit"].area == pytest.approx(0.78 * 0.9 / whole)


def test_a_worse_mixture_has_regret_on_both_axes() -> None:
    worse = {**RESULT, "points": [*RESULT["points"], row("d", "tracer", 3e-4, 1.0, 0.6, 60, 56)]}
    assert compared([worse])[0]["tracer at 0.0003"][3:5] == pytest.approx((0.18, 0.25))


def test_luck_on_one_half_of_the_test_images_is_no_regret() -> None:
    """A mixture that is better on one half and as much worse on the other is the best only in hindsight."""
    lucky = {**row("d", "tracer", 3e-4, 1.0, 0.8, 78, 72), "test": [45, 33]}
    (ways,) = compared([{**RESULT, "points": [*RESULT["points"], lucky]}])
    assert ways["fit"].task_regret == pytest.approx((-0.12 + 0.0) / 2)
    even = {**lucky, "test": [42, 36]}
    assert compared([{**RESULT, "points": [*RESULT["points"], even]}])[0][
        "fit"
    ].task_hindsight == pytest.approx(0)


def test_what_is_learnt_anew_is_not_kept() -> None:
    more = row("d", "tracer", 3e-4, 1.0, 0.8, 78, 96)
    assert Scored({**RESULT, "points": [more]}).place(more) == (0.78, 1.0)


def test_a_promise_counts_as_kept_where_the_start_was_not_left() -> None:
    assert promises([RESULT]) == {0.9: (1, 1, 1), 0.95: (1, 1, 1), 0.97: (1, 1, 0)}
    broken = {**RESULT, "chosen": {**RESULT["chosen"], "0.97": ["a", 1.0]}}
    assert promises([RESULT, broken])[0.97] == (2, 1, 1)
    assert "| fit | 1 |" in table([RESULT])


def test_only_a_loss_on_both_axes_is_worse_than_pretrained() -> None:
    forgets = {**RESULT, "chosen": {**RESULT["chosen"], "None": ["b", 1.0]}}
    both = {**RESULT, "points": [row("b", "ft", 1e-3, 1.0, 0.3, 20, 8)], "chosen": forgets["chosen"]}
    assert worse_than_pretrained([RESULT, forgets]) == 0
    assert worse_than_pretrained([both]) == 1


def test_the_search_is_compared_with_a_large_grid_above_the_pretrained_model() -> None:
    searched = 0.2 * 0.05 + 0.28 * 0.4 + 0.3 * 0.5
    grid = 0.2 * 0.45 + 0.3 * 0.4 + 0.4 * 0.1
    assert Scored(RESULT).coverage() == pytest.approx(searched / grid)
    assert Scored({**RESULT, "grid": 14}).coverage() is None
    assert "of a grid of 100 runs" in table([RESULT], [RESULT])
