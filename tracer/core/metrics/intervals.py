"""95 % intervals in closed form: Student's t for a mean over seeds, Wilson's for a share of samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import and_
from statistics import NormalDist
from typing import NamedTuple

from tracer.core.errors import UserError

NORMAL_QUANTILE = NormalDist().inv_cdf(0.975)


class Interval(NamedTuple):
    """A value with the ends of its 95 % interval, which are infinite where the uncertainty is unknown."""

    low: float
    value: float
    high: float

    @classmethod
    def unknown(cls, value: float) -> Interval:
        """A value whose uncertainty is not known."""
        return cls(-math.inf, value, math.inf)

    @property
    def known(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def less(self, bias: float) -> Interval:
        """The interval of the value without this bias."""
        return Interval(self.low - bias, self.value - bias, self.high - bias)

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def standard_error(self) -> float:
        """That of the value, if the interval is a normal one."""
        return self.half_width / NORMAL_QUANTILE

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


class Spread(NamedTuple):
    """Mean and sample standard deviation over seeds; one seed has no standard deviation."""

    mean: float
    std: float | None
    seeds: int


def mean_std(values: Iterable[float]) -> Spread:
    """Mean and standard deviation (n − 1 in the denominator) over seeds."""
    numbers = [float(value) for value in values]
    if not numbers:
        raise UserError("no values to average")
    mean = math.fsum(numbers) / len(numbers)
    if len(numbers) == 1:
        return Spread(mean, None, 1)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)
    return Spread(mean, math.sqrt(variance), len(numbers))


def t_quantile(df: float) -> float:
    """The 97.5 % quantile of Student's t with `df` degrees of freedom."""
    from scipy.special import stdtrit  # late: most commands never need it

    return float(stdtrit(df, 0.975))


def t_interval(values: Iterable[float]) -> Interval:
    """The mean over seeds with x̄ ± t s/√n, Student's interval; unknown for one seed."""
    mean, std, n = mean_std(values)
    if std is None:
        return Interval.unknown(mean)
    half = t_quantile(n - 1) * std / math.sqrt(n)
    return Interval(mean - half, mean, mean + half)


def independent_mean(parts: Sequence[Interval]) -> Interval:
    """The mean of values whose errors are independent: the squares of the widths of their intervals add up."""
    n = len(parts)
    value = math.fsum(part.value for part in parts) / n
    below = math.hypot(*(part.value - part.low for part in parts)) / n
    above = math.hypot(*(part.high - part.value for part in parts)) / n
    return Interval(value - below, value, value + above)


def wilson_interval(share: float, n: int) -> Interval:
    """A share of n samples with its score interval (Wilson 1927), which stays inside [0, 1]."""
    if not 0 <= share <= 1 or n < 1:
        return Interval.unknown(share)
    z = NORMAL_QUANTILE
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(max(0.0, centre - half), share, min(1.0, centre + half))


def paired_interval(
    first: Sequence[bool], second: Sequence[bool], quantile: float = NORMAL_QUANTILE
) -> Interval:
    """The difference of two shares of hits on the same samples, second − first, with its interval."""
    if len(first) != len(second):
        raise ValueError(f"two results on the same samples expected, not {len(first)} and {len(second)}")
    gained = sum(not before and after for before, after in zip(first, second, strict=True))
    lost = sum(before and not after for before, after in zip(first, second, strict=True))
    return counted_interval(gained, lost, len(first), quantile)


def counted_interval(gained: int, lost: int, n: int, quantile: float = NORMAL_QUANTILE) -> Interval:
    """The paired difference of n samples, of which some were gained and some lost, with its interval.

    It is a 95 % interval unless another quantile of the normal distribution is given.

    Bonett and Price (2012): the Wald interval for paired proportions with one pseudo-observation added to each kind of
    disagreement, which covers at small n and where no sample changed. Widened to hold the difference itself.
    """
    if n == 0:
        return Interval.unknown(0.0)
    value = (gained - lost) / n
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    half = quantile * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return Interval(max(-1.0, min(up - down - half, value)), value, min(1.0, max(up - down + half, value)))


def ratio_bound(before: Sequence[bool], after: Sequence[bool], quantile: float) -> float:
    """A lower bound of the ratio of two shares of hits on the same images, after to before.

    The largest r at which the mean of after − r · before is at least `quantile` standard errors above 0 (Fieller), with
    one image added to each kind of disagreement, as in `paired_interval`. 0 if there is no such r.
    """
    both = sum(map(and_, before, after))
    lost, gained = sum(before) - both + 1, sum(after) - both + 1
    n = len(before) + 2

    def holds(r: float) -> bool:
        mean = (both + gained - r * (both + lost)) / n
        square = (both * (1 - r) ** 2 + lost * r * r + gained) / n
        return mean >= quantile * math.sqrt(max(0.0, square - mean * mean) / n)

    low, high = 0.0, 2.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
