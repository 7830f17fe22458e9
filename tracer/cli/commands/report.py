"""One page about runs, with curves, comparison and commands: `tracer report RUN…`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import tyro

from tracer.cli.console import console
from tracer.core.errors import UserError
from tracer.report import Page, write_report
from tracer.report.plots import write_figures

ABOUT = """\
Write one HTML page about one run or several: it needs no network and opens from disk.

Runs on the same data are compared, seeds of one setting averaged; what is not comparable is shown apart.
`tracer analyse RUN` adds layers, reliability and the WiSE-FT path to a run before it is reported.

Examples:
  tracer report runs/1a2b3c                      one run, finished or not
  tracer report runs/beta                        a sweep, or any folder that holds runs
  tracer report runs/a runs/b --out page.html    some runs, compared
  tracer report runs/a --watch                   while it trains; the open page follows
  tracer report runs/a --figures figures/        every figure as SVG, PDF and CSV too
"""


def main(arguments: list[str]) -> int:
    def report(
        runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN …]")] = (),
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        figures: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
        watch: bool = False,
        every: float = 5.0,
    ) -> int:
        """Write one HTML page that needs no network, about one run or several.

        Args:
            runs: run directories, or folders that hold runs (a sweep, the demo).
            out: the page; by default report.html beside the runs.
            figures: write every figure into this folder too, as SVG, PDF and CSV.
            watch: go on writing while a run is under way; the open page follows.
            every: seconds between two pages, with --watch.
        """
        if not runs:
            raise UserError("name at least one run: tracer report runs/1a2b3c")
        if every <= 0:
            raise UserError(f"--every {every:g}: give a positive number of seconds")
        page_file = out or _beside(runs)
        page = _follow(runs, page_file, every) if watch else write_report(runs, page_file)
        if figures is not None:
            written = write_figures(page.charts, figures)
            console.print(f"{len(written)} files in {figures}", highlight=False, markup=False)
        console.print(page.sections[0].headline, highlight=False, markup=False)
        console.print(f"The page is {page_file}", highlight=False, markup=False)
        return 0

    return tyro.cli(
        report,
        args=arguments,
        prog="tracer report",
        description=ABOUT,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _beside(runs: tuple[Path, ...]) -> Path:
    """In the run's own folder; for several, in the folder that holds them all."""
    if len(runs) == 1:
        return runs[0] / "report.html"
    return Path(os.path.commonpath([run.resolve().parent for run in runs])) / "report.html"


def _follow(runs: tuple[Path, ...], out: Path, every: float) -> Page:
    """Write until every run has finished or somebody presses Ctrl-C; the last page stands still."""
    try:
        page = write_report(runs, out, refresh=every)
        console.print(f"watching; open {out}", highlight=False, markup=False)
        while not page.finished:
            time.sleep(every)
            page = write_report(runs, out, refresh=every)
    except KeyboardInterrupt:
        pass
    return write_report(runs, out)
