"""A complete example on built-in digits, in minutes: `tracer demo`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tracer.api.export import export
from tracer.api.terminal import percent, say, show_table
from tracer.cli.flags import cli
from tracer.cli.training import run_with_progress
from tracer.core.errors import at_least
from tracer.methods.base import method
from tracer.report import write_report
from tracer.runs.experiment import Experiment

METHODS = ("ft", "l2sp", "static_sd", "tracer")


class Row(NamedTuple):
    """Accuracy of one method on the new task and on the original one."""

    title: str
    task: float
    retained: float
    forgotten: float
    run: Path | None


def main(arguments: list[str]) -> int:
    def show(out: Path = Path("runs/demo"), seed: int = 0, quick: bool = False) -> int:
        """Pretrain a small CLIP on grey digits, finetune it on coloured ones with four methods, and compare forgetting.

        Args:
            out: folder of the runs; finished ones are not run again.
            seed: another seed needs another --out.
            quick: a twentieth of the training, which shows that it works and nothing else; needs another --out.
        """
        at_least(0, seed=seed)
        rows = demo(out, seed, 0.05 if quick else 1.0)
        show_table(
            "A small CLIP that could read digits learns to name their colour",
            ("method", "new task", "original digits", "forgotten"),
            [
                (
                    row.title,
                    percent(row.task),
                    percent(row.retained),
                    percent(row.forgotten) if row.run else "",
                )
                for row in rows
            ],
        )
        page = out / "report.html"
        write_report([row.run for row in rows if row.run], page)
        say(f"The runs are in {out}; open {page} for curves and comparison.")
        return 0

    return cli(show, arguments, "tracer demo")


def demo(folder: Path, seed: int = 0, share: float = 1.0) -> list[Row]:
    """Pretrain on grey digits, finetune on coloured ones with each method, and measure both tasks.

    `share` shortens all training.
    """
    pretrained, count = folder / "pretrained", len(METHODS) + 1
    settings = {"batch": 128, "augment": "none", "seed": seed}
    pretraining = Experiment(
        method="flyp",
        data="digits",
        held_out="digits",
        model="tiny-28",
        pretrained="none",
        epochs=4 * share,
        lr=1e-3,
        **settings,
    )
    start = run_with_progress(pretraining, folder / "pretraining", f"pretraining (1 of {count})")
    if not pretrained.exists():
        export(start, pretrained)
    rows = []
    for number, name in enumerate(METHODS, start=2):
        finetuning = Experiment(
            method=name,
            data="digits:colour",
            held_out="digits:colour",
            retain=("digits",),
            model=str(pretrained),
            steps=round(120 * share),
            lr=3e-4,
            **settings,
        )
        title = method(name).title
        finished = run_with_progress(finetuning, folder / name, f"{title} ({number} of {count})")
        before, after = finished.result["before"], finished.result["after"]
        if not rows:
            rows.append(_row("before", before, before, None))
        rows.append(_row(title, before, after, finished.folder))
    return rows


def _row(title: str, before: dict, after: dict, run: Path | None) -> Row:
    (name,) = after["retain"]
    retained = after["retain"][name]
    return Row(title, after["accuracy"], retained, before["retain"][name] - retained, run)
