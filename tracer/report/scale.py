"""Map values to positions along an axis, and choose its ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.report.chart import Axis, Chart


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from [low, high] to [start, end]."""

    axis: Axis
    low: float  # log10 of the value on a logarithmic axis
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, axis: Axis, values: Sequence[float], start: float, end: float, margin: float = 0.06) -> Scale:
        """A scale that shows all values with a margin; shares end at 0 and 1."""
        numbers = [math.log10(value) for value in values] if axis.log else list(values)
        if axis.names:
            numbers += [0.0, len(axis.names) - 1.0]
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
        flat = high - low <= 1e-9 * max(abs(low), abs(high))
        space = (0.02 if axis.percent else 0.05 * abs(high) or 0.5) if flat else margin * (high - low)
        bottom, top = low - space, high + space
        if axis.percent and low >= 0 and high <= 1:
            bottom, top = max(bottom, -0.01), min(top, 1.01)
        if axis.low is not None:
            bottom = axis.low
        if axis.high is not None:
            top = axis.high
        return cls(axis, bottom, top, start, end)

    def __call__(self, value: float) -> float:
        value = math.log10(value) if self.axis.log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Positions and labels, about `most` of them at most."""
        if self.axis.names:
            skip = -(-len(self.axis.names) // most)
            return [(self(i), name) for i, name in enumerate(self.axis.names) if i % skip == 0]
        values = (_log_ticks if self.axis.log else _ticks)(self.low, self.high, most)
        if self.axis.whole and not all(value.is_integer() for value in values):
            values = _ticks(self.low, self.high, most // 2)
        values = [value for value in values if not self.axis.whole or value.is_integer()]
        labels = _labels(values, self.axis)
        return [(self(value), label) for value, label in zip(values, labels, strict=True)]


def scales(chart: Chart) -> tuple[Scale, Scale]:
    """The x and y scales that show all of the chart's values; plain curves fill the whole width."""
    box, series = chart.box, chart.series
    plain = not chart.labelled and not chart.x.names and not chart.x.log
    margin = 0.0 if plain and all(each.mark == "line" for each in series) else 0.06
    points = [point for each in series for point in each.points]
    xs = [point.x for point in points]
    ys = [value for _, *values, _, _ in points for value in values if value is not None]
    x = Scale.of(chart.x, xs, box.left, box.width - box.right, margin)
    return x, Scale.of(chart.y, ys, box.height - box.bottom, box.top)


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten inside [low, high]."""
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten, with multiples of 2 and 5 or more where there are few of them."""
    for digits in ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 7)):
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [digit * 10.0**power for power in powers for digit in digits]
        inside = [value for value in values if low - 1e-9 <= math.log10(value) <= high + 1e-9]
        if len(inside) >= 3:
            return inside[:: -(-len(inside) // (2 * most))]
    return inside


def _labels(values: Sequence[float], axis: Axis) -> list[str]:
    """The values with the same number of decimals, as few as are exact."""
    numbers = [100 * value for value in values] if axis.percent else list(values)
    if axis.log or max(map(abs, numbers), default=0) >= 1e5:
        return [f"{value:g}".replace("-", "−") for value in numbers]
    exact = (d for d in range(6) if all(math.isclose(round(v, d), v, abs_tol=1e-9) for v in numbers))
    decimals = next(exact, 6)
    return [f"{value:.{decimals}f}".replace("-", "−") for value in numbers]


def shown(value: float, percent: bool = False) -> str:
    """A number as text: shares in percent, others with four significant digits, a typographic minus sign."""
    text = f"{100 * value:.1f} %" if percent else f"{value:.4g}"
    return text.replace("-", "−")


def points(change: float) -> str:
    """A difference of shares in percentage points."""
    return f"{100 * change:+.1f}".replace("-", "−")
