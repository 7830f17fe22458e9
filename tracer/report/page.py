"""One self-contained HTML page about some runs, which opens from disk without a server."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from tracer.core.errors import UserError
from tracer.report.ablation import ablations
from tracer.report.calibration import reliability
from tracer.report.chart import Chart
from tracer.report.closer import closer_look, gallery
from tracer.report.commands import Command, commands, next_steps
from tracer.report.comparison import Group, compare, show
from tracer.report.curves import learning, teaching, terms
from tracer.report.frontier import frontier
from tracer.report.headline import headline
from tracer.report.per_class import class_table, confusion_table, matrix
from tracer.report.representation import representation
from tracer.report.run_data import find_runs, read_runs
from tracer.report.scores import comparison, suite_tables
from tracer.report.svg import payload, svg
from tracer.report.table import costs
from tracer.report.templates import CONTROLS, HERE, environment
from tracer.storage.atomic import write_bytes

MAX_POINTS = 60_000  # of all curves of a page, which keeps it well under 5 MB

PANELS = {
    "Learning": learning,
    "Teacher": teaching,
    "Loss terms": terms,
    "Ablation": ablations,
    "Calibration": reliability,
    "Representation": representation,
}

# What the template asks of each group, run and data set, by the names of the functions.
CONTENTS = (comparison, suite_tables, costs, commands, show)
CLOSER = (closer_look, gallery, class_table, confusion_table, matrix)


class Panel(NamedTuple):
    """Charts under one tab."""

    title: str
    charts: tuple[Chart, ...]

    @property
    def own_legend(self) -> bool:
        """Whether all of its charts have their own legend."""
        return all(chart.own_legend for chart in self.charts)

    @property
    def banded(self) -> bool:
        """Whether lines are means with a band of the range over seeds."""
        return any(
            series.intervals and series.mark == "line" for chart in self.charts for series in chart.series
        )


class Section(NamedTuple):
    """The part of the page about one group of comparable runs."""

    number: int
    group: Group
    headline: str
    steps: tuple[Command, ...]
    frontier: Chart | None
    shifted: Chart | None
    panels: tuple[Panel, ...]

    @property
    def charts(self) -> Iterator[Chart]:
        yield from (chart for chart in (self.frontier, self.shifted) if chart)
        for panel in self.panels:
            yield from panel.charts


class Summary(NamedTuple):
    """What stands at the top of a page about the trials of a search, instead of what the runs themselves say."""

    headline: str
    steps: tuple[Command, ...]
    frontier: Chart


@dataclass(frozen=True)
class Page:
    """The report on some runs."""

    groups: tuple[Group, ...]
    unreadable: tuple[str, ...] = ()
    summary: Summary | None = None

    @property
    def charts(self) -> list[Chart]:
        """Every figure, with all of its points."""
        return [chart for section in self.sections for chart in section.charts]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        first, *others = (_section(number, group) for number, group in enumerate(self.groups, 1))
        return (first._replace(**self.summary._asdict()) if self.summary else first, *others)

    def html(self) -> str:
        """The page as HTML."""
        curves = sum(len(chart.series) for chart in self.charts)
        most = max(20, min(400, MAX_POINTS // max(1, curves)))
        charts = [chart.thinned(most) for chart in self.charts]
        files = ("chart.css", "page.css", "page.js")
        chart_style, page_style, script = ((HERE / name).read_text(encoding="utf-8") for name in files)
        style = chart_style + page_style
        template = environment().get_template("page.html.j2")
        html = template.render(
            sections=self.sections,
            drawn={chart.name: svg(chart) for chart in charts},
            data=embedded({"figures": {chart.name: payload(chart) for chart in charts}}),
            unreadable=self.unreadable,
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            **{each.__name__: each for each in (*CONTENTS, *CLOSER)},
        )
        return html.translate(CONTROLS)


def read_page(paths: Sequence[Path]) -> Page:
    """Read runs, or folders that hold runs."""
    runs, unreadable = read_runs(find_runs(paths))
    if not runs:
        raise UserError(f"no run can be read: {'; '.join(unreadable)}")
    return Page(tuple(compare(runs)), tuple(unreadable))


def write_report(folders: Sequence[Path], out: Path, *, summary: Summary | None = None) -> Page:
    """Write the page about these runs to `out` atomically, and return it."""
    page = replace(read_page(folders), summary=summary)
    write_bytes(out, page.html().encode("utf-8", "replace"))
    return page


def embedded(value: Any) -> Markup:
    """JSON that is safe inside a script element: it can neither end it nor start a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026"))


def _policy(style: str, script: str) -> str:
    """A content security policy: apply this style, run this script, show embedded images, load nothing."""

    def digest(content: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    return f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; img-src data:; base-uri 'none'"


def _section(number: int, group: Group) -> Section:
    prefix = f"g{number}"
    shifts = None if group.shifts == group.retained else frontier(group, f"{prefix}-shifts", group.shifts)
    panels = (Panel(title, tuple(_named(prefix, draw(group)))) for title, draw in PANELS.items())
    return Section(
        number,
        group,
        headline(group),
        tuple(next_steps(group)),
        frontier(group, f"{prefix}-frontier", group.retained),
        shifts,
        tuple(panel for panel in panels if panel.charts),
    )


def _named(prefix: str, charts: list[Chart]) -> Iterator[Chart]:
    """The charts with distinct names, which are ids and file names: repeated ones get a number."""
    counts: dict[str, int] = {}
    for chart in charts:
        count = counts[chart.name] = counts.get(chart.name, 0) + 1
        yield replace(chart, name=f"{prefix}-{chart.name}" + (f"-{count}" if count > 1 else ""))
