"""The paper's controlled experiment on digits: `tracer toy`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tracer.api.terminal import console, errors
from tracer.cli.flags import cli
from tracer.core.errors import at_least
from tracer.training.interrupt import Interrupted

if TYPE_CHECKING:
    from studies.toy.study import Setting


@dataclass(frozen=True)
class Toy:
    """Pretrain a small CLIP on grey digits, finetune its image tower on coloured ones by seven methods, and compare."""

    out: Path | None = None
    """Folder of runs, tables and figures; finished runs in it are not run again. Default: runs/toy."""
    task: Literal["colour", "group", "digit"] = "colour"
    """What coloured digits are called: by their colour, or low (0 to 4) and high (5 to 9); or by their digit."""
    seeds: int = 1
    """Number of seeds, counted from 0; with --teachers it may be 0, and only the teachers are recorded."""
    frontier: bool = False
    """Run every λ of each strategy instead of two."""
    teachers: bool = False
    """Also record ten teachers over a longer run: EMA, kernels, intervals, clocks."""
    full: Path | None = None
    """All of MNIST, ten epochs: a folder or archive of its idx files, or a folder to download to."""
    show: Path | None = None
    """Run nothing; print the table of this result file, and draw its figures if --out is given."""
    steps: int | None = None
    """Finetuning steps, instead of 60 (or ten epochs of all of MNIST)."""
    pretraining: int | None = None
    """Pretraining steps, instead of 240 (or ten epochs)."""


def main(arguments: list[str]) -> int:
    options = cli(Toy, arguments, "tracer toy")
    at_least(1, steps=options.steps, pretraining=options.pretraining)
    at_least(0 if options.teachers else 1, seeds=options.seeds)
    try:
        return _run(options, shlex.join(["tracer", "toy", *arguments]))
    except Interrupted as stop:
        errors.print("stopped and saved; the same command resumes")
        return 128 + stop.signal_number


def _run(options: Toy, command: str) -> int:
    from studies.toy.files import show, write_comparison, write_teachers
    from studies.toy.strategies import variants
    from studies.toy.study import Results, study, teacher_curves

    if options.show:
        _show(show(options.show, options.out))
        return 0
    setting = _setting(options)
    if options.seeds:
        rows = list(study(setting, variants(options.frontier, options.task), range(options.seeds)))
        data = "MNIST" if setting.mnist else "embedded digits"
        _show(write_comparison(Results(setting.task, data, setting.scale, rows), setting.out, command))
    if options.teachers:
        _show(write_teachers(dict(teacher_curves(setting, seed=0)), setting.task, setting.out, command))
    _show(f"Runs, tables and figures are in {setting.out}.")
    return 0


def _setting(options: Toy) -> Setting:
    from dataclasses import replace

    from studies.toy.mnist import find_mnist
    from studies.toy.study import Scale, Setting

    out = options.out or Path("runs/toy-full" if options.full else "runs/toy")
    steps = {"steps": options.steps, "pretraining": options.pretraining}
    scale = replace(
        Scale.full() if options.full else Scale(), **{k: v for k, v in steps.items() if v is not None}
    )
    mnist = find_mnist(options.full, out / "mnist") if options.full else None
    return Setting(out, options.task, scale, mnist)


def _show(text: str) -> None:
    console.print(text, highlight=False, markup=False)
