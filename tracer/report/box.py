"""The size and margins of a chart, and its scales."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.report.chart import Chart
from tracer.report.scale import Scale


@dataclass(frozen=True)
class Box:
    """Width, height and margins in the units of the SVG."""

    width: int = 380
    height: int = 250
    left: int = 46
    right: int = 14
    top: int = 24
    bottom: int = 38

    def scales(self, chart: Chart) -> tuple[Scale, Scale]:
        """The x and y scales that show all of the chart's values; plain curves fill the whole width."""
        lines = all(series.mark == "line" for series in chart.series)
        curves = lines and not chart.labelled and not chart.x.names and not chart.x.log
        x = Scale.of(
            chart.x, chart.values("x"), self.left, self.width - self.right, margin=0.0 if curves else 0.06
        )
        y = Scale.of(chart.y, chart.values("y"), self.height - self.bottom, self.top)
        return x, y
