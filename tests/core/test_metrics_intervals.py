"""Closed-form intervals are SciPy's, and a value of unknown uncertainty says so."""

from __future__ import annotations

import pytest
from scipy import stats

from tracer.core.metrics import Interval, t_interval, t_quantile, wilson_interval


@pytest.mark.parametrize("df", [1, 2, 3.7, 30, 1e6])
def test_quantile_is_students(df: float) -> None:
    assert t_quantile(df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_interval_over_seeds_is_students(n: int) -> None:
    values = [i * i / n for i in range(n)]
    low, mean, high = t_interval(values)
    assert mean == pytest.approx(sum(values) / n)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, n - 1, loc=mean, scale=stats.sem(values)))


@pytest.mark.parametrize(("right", "n"), [(0, 20), (1, 3), (45, 50), (50, 50)])
def test_interval_of_a_share_is_wilsons(right: int, n: int) -> None:
    interval, expected = (
        wilson_interval(right / n, n),
        stats.binomtest(right, n).proportion_ci(method="wilson"),
    )
    assert interval.value == right / n
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_uncertainty_of_one_seed_or_of_no_sample_is_unknown() -> None:
    for interval in (t_interval([0.5]), wilson_interval(0.5, 0), Interval.unknown(0.5)):
        assert interval.value == 0.5
        assert not interval.known
        assert not interval.excludes_zero
    assert Interval(0.25, 0.5, 1.0).known
    assert Interval(0.25, 0.5, 1.0).half_width == 0.375
