"""A complete example on built-in digits, in minutes: `tracer demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracer.api.export import export
from tracer.api.terminal import say, show_table
from tracer.cli.flags import command
from tracer.cli.training import run_with_progress
from tracer.core.errors import at_least
from tracer.evaluation.verdict import plus_minus, verdict
from tracer.methods.base import method
from tracer.report import write_report
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run

METHODS = ("ft", "l2sp", "static_sd", "tracer")


@command("tracer demo")
def main(out: Path = Path("runs/demo"), seed: int = 0, quick: bool = False) -> int:
    """Pretrain a small CLIP on grey digits, finetune it on coloured ones with four methods, and compare forgetting.

    Args:
        out: folder of the runs; finished ones are not run again.
        seed: another seed needs another --out.
        quick: a twentieth of the training, which shows that it works and nothing else; needs another --out.
    """
    at_least(0, seed=seed)
    runs = demo(out, seed, 0.05 if quick else 1.0)
    images = runs[0].result["changes"]["task"]["n"]
    show_table(
        f"A small CLIP that could read digits learns to name their colour ({images} images each)",
        ("method", "new task", "original digits", "forgotten"),
        _rows(runs),
    )
    page = out / "report.html"
    write_report([run.folder for run in runs], page)
    say(f"The runs are in {out}; open {page} for curves and comparison.")
    return 0


def demo(folder: Path, seed: int = 0, share: float = 1.0) -> list[Run]:
    """Pretrain on grey digits and finetune on coloured ones with each method, whose runs are returned.

    `share` shortens all training.
    """
    pretrained, count = folder / "pretrained", len(METHODS) + 1
    settings: dict[str, Any] = {"batch": 128, "augment": "none", "seed": seed}
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
    runs = []
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
        title = f"{method(name).title} ({number} of {count})"
        runs.append(run_with_progress(finetuning, folder / name, title))
    return runs


def _rows(runs: list[Run]) -> list[tuple[str, ...]]:
    """Accuracies on both tasks with their intervals, first those of the pretrained model."""
    rows: list[tuple[str, ...]] = []
    for run in runs:
        outcome = verdict(run.result)
        assert outcome is not None
        task, (kept,) = outcome.task, outcome.retained.values()
        if not rows:
            rows.append(("before", plus_minus(task.before), plus_minus(kept.before), ""))
        lost, half = -100 * kept.difference.value, 100 * kept.difference.half_width
        title, forgotten = method(run.experiment.method).title, f"{lost:.1f} ± {half:.1f}"
        rows.append((title, plus_minus(task.after), plus_minus(kept.after), forgotten))
    return rows
