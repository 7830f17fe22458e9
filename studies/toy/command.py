"""The paper's controlled experiment on embedded digits, over a range of λ: `tracer toy`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from tracer.cli.console import Display, console, errors
from tracer.core.errors import at_least
from tracer.training.interrupt import Interrupted

if TYPE_CHECKING:
    from studies.toy.study import Setting
    from tracer.runs.plan import Plan
    from tracer.training.loop import Report


@dataclass(frozen=True)
class Toy:
    """Pretrain a small CLIP on grey digits, teach its image tower coloured ones in seven ways, see what is lost."""

    out: Path | None = None
    """Where runs, tables and figures go; what is finished there is not run again. Default: runs/toy."""
    task: Literal["colour", "group"] = "colour"
    """What coloured digits are called: by their colour, or low (0 to 4) and high (5 to 9)."""
    seeds: int = 1
    """How many seeds, from 0."""
    frontier: bool = False
    """Try every λ of each strategy, not two only."""
    teachers: bool = False
    """Also follow ten teachers over a longer run: EMA, kernels, intervals, clocks."""
    full: Path | None = None
    """All of MNIST, ten epochs: a folder or archive of its idx files, or a folder to download to."""
    show: Path | None = None
    """Run nothing: print the table of this JSON of an earlier study, and draw its figures if --out is given."""
    steps: int | None = None
    """Finetuning steps, instead of 60 (or ten epochs of all of MNIST)."""
    pretraining: int | None = None
    """Pretraining steps, instead of 240 (or ten epochs)."""


def main(arguments: list[str]) -> int:
    asked = tyro.cli(Toy, args=arguments, prog="tracer toy")
    at_least(1, seeds=asked.seeds, steps=asked.steps, pretraining=asked.pretraining)
    try:
        return _run(asked, shlex.join(["tracer", "toy", *arguments]))
    except Interrupted as stop:
        errors.print("stopped and saved; the same command goes on")
        return 128 + stop.signal_number


def _run(asked: Toy, command: str) -> int:
    from studies.toy.files import show, write_comparison, write_teachers
    from studies.toy.strategies import variants
    from studies.toy.study import Found, study, taught

    if asked.show:
        _show(show(asked.show, asked.out))
        return 0
    setting = _setting(asked)
    rows = list(study(setting, variants(asked.frontier), range(asked.seeds)))
    data = "MNIST" if setting.mnist else "embedded digits"
    _show(write_comparison(Found(setting.task, data, setting.scale, rows), setting.out, command))
    if asked.teachers:
        _show(write_teachers(dict(taught(setting, seed=0)), setting.task, setting.out, command))
    _show(f"Runs, tables and figures are in {setting.out}.")
    return 0


def _setting(asked: Toy) -> Setting:
    from dataclasses import replace

    from studies.toy.mnist import located
    from studies.toy.study import Scale, Setting

    out = asked.out or Path("runs/toy-full" if asked.full else "runs/toy")
    steps = {"steps": asked.steps, "pretraining": asked.pretraining}
    scale = replace(
        Scale.full() if asked.full else Scale(), **{k: v for k, v in steps.items() if v is not None}
    )
    mnist = located(asked.full, out / "mnist") if asked.full else None
    return Setting(out, _watch, asked.task, scale, mnist)


def _show(text: str) -> None:
    console.print(text, highlight=False, markup=False)


def _watch(plan: Plan, reports: Iterator[Report]) -> None:
    with Display(plan.method.title, plan.steps) as display:
        for report in reports:
            display.show(report)
