"""Write an HTML page of runs and their images: `tracer report RUN…`."""

from __future__ import annotations

import os
from pathlib import Path

from tracer.api.terminal import say
from tracer.cli.flags import command
from tracer.core.errors import UserError
from tracer.report import write_report
from tracer.report.svg import write_figures

DOCTYPE = b"<!doctype html>"


@command("tracer report")
def main(
    runs: tuple[Path, ...],
    /,
    out: Path | None = None,
    figures: Path | None = None,
) -> int:
    """Write an HTML report of one run or several, as a single file that needs no network.

    Runs on the same data are compared and averaged over seeds; runs that are not comparable are shown separately.
    Run `tracer analyse RUN` first to include layers, reliability and the WiSE-FT path.

    Examples:
      tracer report runs/1a2b3c                      one run, finished or not
      tracer report runs/beta                        a sweep, or any folder that contains runs
      tracer report runs/a runs/b --out page.html    a comparison of runs
      tracer report runs/a --figures figures/        also write every figure as SVG and CSV

    Args:
        runs: folders of runs, or folders that contain runs (a sweep, the demo).
        out: the HTML file; by default report.html next to the runs.
        figures: also write every figure into this folder, as SVG and CSV.
    """
    place = runs[0] if len(runs) == 1 else Path(os.path.commonpath([run.resolve().parent for run in runs]))
    page_file = out or place / "report.html"
    if page_file.exists() and not (page_file.is_file() and page_file.read_bytes()[:15].lower() == DOCTYPE):
        # It may be the log of a run, which would be lost.
        raise UserError(f"{page_file} is not a page of tracer: choose another --out")
    page = write_report(runs, page_file)
    if figures is not None:
        say(f"{len(write_figures(page.charts, figures))} files in {figures}")
    say(page.sections[0].headline)
    say(f"The page is {page_file}")
    return 0
