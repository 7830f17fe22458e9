"""The room a picture has, and the scales that fill it."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.report.chart import Chart
from tracer.report.scale import Scale


@dataclass(frozen=True)
class Box:
    """The picture and the part of it that holds the data."""

    width: int = 380
    height: int = 250
    left: int = 46
    right: int = 14
    top: int = 24
    bottom: int = 38

    def scales(self, chart: Chart) -> tuple[Scale, Scale]:
        bare = all(series.mark == "line" for series in chart.series)
        line = bare and not chart.labelled and not chart.x.names and not chart.x.log
        x = Scale.of(
            chart.x, chart.values("x"), self.left, self.width - self.right, air=0.0 if line else 0.06
        )
        y = Scale.of(chart.y, chart.values("y"), self.height - self.bottom, self.top)
        return x, y
