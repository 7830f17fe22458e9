"""The interval of a paired difference of shares: its definition, its symmetry and its coverage."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.core.metrics import paired_interval


def test_is_the_adjusted_wald_interval() -> None:
    before = [True] * 5 + [False] * 45
    after = [True] * 2 + [False] * 3 + [True] * 10 + [False] * 35
    low, value, high = paired_interval(before, after)
    assert value == pytest.approx((10 - 3) / 50)
    up, down = 11 / 52, 4 / 52
    half = 1.959964 * ((up + down - (up - down) ** 2) / 52) ** 0.5
    assert (low, high) == pytest.approx((up - down - half, up - down + half), abs=1e-6)
    mirrored = paired_interval(after, before)
    assert (mirrored.low, mirrored.value, mirrored.high) == pytest.approx((-high, -value, -low))


def test_no_change_is_not_certainty() -> None:
    few, many = paired_interval([True] * 10, [True] * 10), paired_interval([True] * 1000, [True] * 1000)
    assert few.value == many.value == 0
    assert few.low < -0.1 < few.high
    assert many.half_width < 0.01
    assert not few.excludes_zero


def test_stays_within_one_and_holds_its_value() -> None:
    interval = paired_interval([False] * 400, [True] * 400)
    assert interval.low <= interval.value == 1.0 == interval.high
    with pytest.raises(ValueError, match="same samples"):
        paired_interval([True], [])


@pytest.mark.parametrize(("n", "gained", "lost"), [(60, 0.10, 0.05), (100, 0.10, 0.10), (300, 0.30, 0.02)])
def test_covers_the_true_difference(n: int, gained: float, lost: float) -> None:
    """About 95 % of intervals hold the truth; the bounds allow for 2000 trials (standard error 0.5 %)."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(2000):
        kind = rng.choice(3, n, p=(gained, lost, 1 - gained - lost))
        interval = paired_interval((kind == 1).tolist(), (kind == 0).tolist())
        held += interval.low <= gained - lost <= interval.high
    assert 0.93 <= held / 2000 <= 0.99
