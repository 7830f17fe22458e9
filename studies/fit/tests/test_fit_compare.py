"""Regret and area of each way to a model, on a table made by hand."""

from __future__ import annotations

import pytest

from studies.fit.command import table
from studies.fit.compare import promises, reached


def row(trial: str, method: str, lr: float, alpha: float, held_out: float, test: int, kept: int) -> dict:
    counts = {"test": test, "n": 100, "kept": kept, "m": 100}
    return {
        "trial": trial,
        "method": method,
        "lr": lr,
        "steps": 60,
        "alpha": alpha,
        "held_out": held_out,
    } | counts


RESULT = {
    "task": "colours",
    "seed": 0,
    "held_out": 50,
    "before": {"held_out": 0.5, "test": 50, "n": 100, "kept": 80, "m": 100},
    "points": [
        row("a", "ft", 3e-4, 0.5, 0.7, 70, 76),
        row("a", "ft", 3e-4, 1.0, 0.8, 80, 40),
        row("b", "ft", 1e-3, 1.0, 0.9, 90, 8),
        row("c", "lipsum", 3e-4, 1.0, 0.8, 78, 72),
    ],
    "chosen": {"None": ["c", 1.0], "0.9": ["c", 1.0], "0.95": ["a", 0.5], "0.97": ["pretrained", 0.0]},
}


def test_regret_is_the_distance_to_the_front_in_hindsight() -> None:
    ways = reached(RESULT)
    assert ways["fit"][:2] == pytest.approx((0.78, 0.9))
    assert ways["fit"][3:] == pytest.approx((0.0, 0.0))
    assert ways["ft, default"][3:] == pytest.approx((0.0, 0.0))  # the most accurate that keeps half
    assert ways["ft, rate by accuracy"][:2] == pytest.approx((0.9, 0.1))
    assert ways["pretrained"][:2] == (0.5, 1.0)
    assert ways["fit --keep 0.95"][:2] == pytest.approx((0.7, 0.95))
    assert ways["fit --keep 0.97"] == ways["pretrained"]
    whole = 0.5 * 0.05 + 0.7 * 0.05 + 0.78 * 0.4 + 0.8 * 0.4 + 0.9 * 0.1
    assert ways["fit"].area == pytest.approx(0.78 * 0.9 / whole)


def test_a_worse_mixture_has_regret_on_both_axes() -> None:
    worse = {**RESULT, "points": [*RESULT["points"], row("d", "tracer", 3e-4, 1.0, 0.6, 60, 56)]}
    assert reached(worse)["tracer, default"][3:] == pytest.approx((0.18, 0.25))


def test_a_promise_counts_as_kept_where_the_start_was_not_left() -> None:
    assert promises([RESULT]) == {0.9: (1, 0, 1), 0.95: (1, 0, 1), 0.97: (1, 0, 0)}
    assert "| fit | 1 | 78.0 | 90.0 |" in table([RESULT])
