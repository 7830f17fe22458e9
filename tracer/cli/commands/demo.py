"""The whole story on embedded digits, in minutes: `tracer demo`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tyro

from tracer.cli.console import Display, console, percent, show_table
from tracer.cli.demo import demo
from tracer.core.errors import at_least
from tracer.report import write_report
from tracer.runs.plan import Plan
from tracer.training.loop import Report


def main(arguments: list[str]) -> int:
    def show(out: Path = Path("runs/demo"), seed: int = 0) -> int:
        """Pretrain a small CLIP on grey digits, finetune it on coloured ones in four ways, see what each forgets.

        Args:
            out: where the runs go; what is finished there is not run again.
            seed: another seed needs another --out.
        """
        at_least(0, seed=seed)
        rows = demo(out, _watch, seed)
        show_table(
            "A small CLIP that could read digits learns to name their colour",
            ("method", "new task", "original digits", "forgotten"),
            [
                (row.title, percent(row.task), percent(row.kept), percent(row.forgotten) if row.run else "")
                for row in rows
            ],
        )
        page = out / "report.html"
        write_report([row.run for row in rows if row.run], page)
        console.print(f"The runs are in {out}; open {page} for curves and comparison.", highlight=False)
        return 0

    return tyro.cli(show, args=arguments, prog="tracer demo")


def _watch(plan: Plan, reports: Iterator[Report]) -> None:
    with Display(plan.method.title, plan.steps) as display:
        for report in reports:
            display.show(report)
