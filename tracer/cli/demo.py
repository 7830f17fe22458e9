"""The main job on embedded data: a small CLIP learns digits, then colours, and each method forgets its share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tracer.models.export import export
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.runs.run import Run
from tracer.training.loop import Report, train

METHODS = ("ft", "l2sp", "static_sd", "tracer")

Watch = Callable[[Plan, Iterator[Report]], None]


class Row(NamedTuple):
    """What one method did to the new task and to the old one."""

    title: str
    task: float
    kept: float
    forgotten: float
    run: Path | None


def demo(folder: Path, watch: Watch, seed: int = 0) -> list[Row]:
    """Pretrain on grey digits, finetune on coloured ones with each method, measure both tasks; `watch` sees it all."""
    pretrained = folder / "pretrained"
    settings = {"batch": 128, "augment": "none", "seed": seed}
    first = Experiment(
        method="flyp",
        data="digits",
        held_out="digits",
        model="tiny-28",
        pretrained="none",
        epochs=4,
        lr=1e-3,
        **settings,
    )
    run = carry(first, folder / "pretraining", watch)
    if not pretrained.exists():
        export(run.student(), pretrained)
    rows = []
    for name in METHODS:
        second = Experiment(
            method=name,
            data="digits:colour",
            held_out="digits:colour",
            retain=("digits",),
            model=str(pretrained),
            steps=120,
            lr=3e-4,
            **settings,
        )
        done = carry(second, folder / name, watch)
        result = done.result
        if not rows:
            rows.append(_row("before", result["before"], result["before"], None))
        rows.append(_row(plan(second).method.title, result["before"], result["after"], done.folder))
    return rows


def carry(experiment: Experiment, folder: Path, watch: Watch, **pace: int) -> Run:
    """A finished run in `folder`: made now, gone on with, or found finished; `pace` is passed to `train`."""
    made = plan(experiment)
    fresh = not (folder / "experiment.json").exists()
    run = Run.create(made, folder) if fresh else Run.open(folder)
    run.require(made)
    if not run.finished:
        with run.locked():
            watch(made, train(made, run, World("cpu", "fp32"), **pace))
    return run


def _row(title: str, before: dict, after: dict, run: Path | None) -> Row:
    (name,) = after["retain"]
    kept = after["retain"][name]
    return Row(title, after["accuracy"], kept, before["retain"][name] - kept, run)
