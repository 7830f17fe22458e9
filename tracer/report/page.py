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
from tracer.report.box import Box
from tracer.report.calibration import reliability
from tracer.report.chart import Chart, thinned
from tracer.report.closer import Closer, closer_look
from tracer.report.comparison import Group, compare, show
from tracer.report.curves import learning, teaching, terms
from tracer.report.frontier import frontier
from tracer.report.headline import headline
from tracer.report.next_steps import next_steps
from tracer.report.representation import representation
from tracer.report.reproduce import Command, commands
from tracer.report.run_data import find_runs, read_runs
from tracer.report.suite import suite_tables
from tracer.report.svg import payload, svg
from tracer.report.table import HtmlTable, comparison, costs
from tracer.report.templates import HERE, environment
from tracer.storage.atomic import write_bytes

MAX_POINTS = 60_000  # of all curves of a page, which keeps it well under 5 MB
SMALL, LARGE, SQUARE = Box(), Box(width=560, height=400, left=52, bottom=44), Box(width=300, height=290)

# Control characters, which HTML does not allow, are shown as their Unicode symbols.
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\r\t"} | {0x7F: 0x2421}


@dataclass(frozen=True)
class Figure:
    """A chart and its size."""

    chart: Chart
    box: Box

    @property
    def svg(self) -> Markup:
        return svg(self.chart, self.box)


@dataclass(frozen=True)
class Panel:
    """Charts under one tab."""

    title: str
    figures: tuple[Figure, ...]

    @property
    def own_legend(self) -> bool:
        """Whether all of its charts have their own legend."""
        return all(figure.chart.own_legend for figure in self.figures)

    @property
    def banded(self) -> bool:
        """Whether lines are means with a band of the range over seeds."""
        series = [each for figure in self.figures for each in figure.chart.series]
        return any(each.low and each.mark == "line" for each in series)


@dataclass(frozen=True)
class Section:
    """The part of the page about one group of comparable runs."""

    number: int
    group: Group
    headline: str
    steps: tuple[Command, ...]
    closer: Closer | None
    frontier: Figure | None
    comparison: HtmlTable | None
    more: HtmlTable | None
    suite: tuple[HtmlTable, ...]
    shifted: Figure | None
    panels: tuple[Panel, ...]
    costs: HtmlTable

    @property
    def measured(self) -> bool:
        return any(setting.finished for setting in self.group.settings)

    @property
    def figures(self) -> Iterator[Figure]:
        yield from (figure for figure in (self.frontier, self.shifted) if figure)
        for panel in self.panels:
            yield from panel.figures


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
    def finished(self) -> bool:
        return all(run.finished for group in self.groups for run in group.runs)

    @property
    def charts(self) -> list[Chart]:
        """Every figure, with all of its points."""
        return [figure.chart for section in self.sections for figure in section.figures]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        sections = [_section(number, group) for number, group in enumerate(self.groups, 1)]
        if self.summary is not None:
            headline, steps, chart = self.summary
            figure = Figure(chart, LARGE)
            sections[0] = replace(sections[0], headline=headline, steps=steps, frontier=figure)
        return tuple(sections)

    def html(self, refresh: float | None = None) -> str:
        """The page as HTML; with `refresh` it reloads every so many seconds until the reader stops it."""
        sections = _thin(self.sections)
        figures = {f.chart.name: payload(f.chart, f.box) for section in sections for f in section.figures}
        style, script = ((HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
        template = environment().get_template("page.html.j2")
        html = template.render(
            sections=sections,
            show=show,
            commands=commands,
            unreadable=self.unreadable,
            title=sections[0].headline,
            data=embedded({"figures": figures}),
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            refresh=refresh,
            written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )
        return html.translate(CONTROLS)


def read_page(paths: Sequence[Path]) -> Page:
    """Read runs, or folders that hold runs."""
    runs, unreadable = read_runs(find_runs(paths))
    if not runs:
        raise UserError(f"no run can be read: {'; '.join(unreadable)}")
    return Page(tuple(compare(runs)), tuple(unreadable))


def write_report(
    folders: Sequence[Path], out: Path, *, refresh: float | None = None, summary: Summary | None = None
) -> Page:
    """Write the page about these runs to `out` atomically, and return it."""
    page = replace(read_page(folders), summary=summary)
    write_bytes(out, page.html(refresh).encode("utf-8", "replace"))
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
    retained = frontier(group, f"{prefix}-frontier", group.retained)
    shifts = None if group.shifts == group.retained else frontier(group, f"{prefix}-shifts", group.shifts)
    kinds = [
        ("Learning", learning, SMALL),
        ("Teacher", teaching, SMALL),
        ("Loss terms", terms, SMALL),
        ("Ablation", ablations, SMALL),
        ("Calibration", reliability, SQUARE),
        ("Representation", representation, SMALL),
    ]
    panels = [
        Panel(title, tuple(Figure(chart, box) for chart in _distinct(draw(group, prefix)) if chart.drawable))
        for title, draw, box in kinds
    ]
    return Section(
        number,
        group,
        headline(group),
        tuple(next_steps(group)),
        closer_look(group) if number == 1 else None,
        Figure(retained, LARGE) if retained else None,
        comparison(group),
        comparison(group, further=True),
        tuple(suite_tables(group)),
        Figure(shifts, LARGE) if shifts else None,
        tuple(panel for panel in panels if panel.figures),
        costs(group),
    )


def _distinct(charts: list[Chart]) -> Iterator[Chart]:
    """The charts with distinct names, which are ids and file names: repeated ones get a number."""
    counts: dict[str, int] = {}
    for chart in charts:
        count = counts[chart.name] = counts.get(chart.name, 0) + 1
        yield replace(chart, name=f"{chart.name}-{count}") if count > 1 else chart


def _thin(sections: Sequence[Section]) -> list[Section]:
    """The sections with fewer points per curve where there are very many."""
    count = sum(len(figure.chart.series) for section in sections for figure in section.figures)
    most = max(20, min(400, MAX_POINTS // max(1, count)))

    def thin(figure: Figure) -> Figure:
        series = tuple(thinned(part, most) for part in figure.chart.series)
        return replace(figure, chart=replace(figure.chart, series=series))

    return [
        replace(
            section,
            frontier=thin(section.frontier) if section.frontier else None,
            shifted=thin(section.shifted) if section.shifted else None,
            panels=tuple(replace(panel, figures=tuple(map(thin, panel.figures))) for panel in section.panels),
        )
        for section in sections
    ]
