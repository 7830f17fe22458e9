"""Carry out studies: pretrain what is absent, search rates, run every trial; what is finished is not run again."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import torch

from studies.emojishift.measure import chosen, measure
from studies.emojishift.rows import Row, beginning, row
from studies.emojishift.study import CHOSEN_ON, Arm, Job, Setting, Study, job, searches
from tracer.cli.demo import carry
from tracer.core.errors import UserError
from tracer.models.export import export
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan
from tracer.runs.run import Run
from tracer.training.loop import Report

Tell = Callable[[str], None]
Found = dict[tuple[str, int], dict[Setting, float]]  # validation accuracies of an arm on a fold


class Place(NamedTuple):
    """Where runs and pretrained models lie, and how many processes work at a time, each on one thread."""

    root: Path
    jobs: int = 1

    @property
    def pretrained(self) -> Path:
        return self.root / "pretrained"


def conduct(studies: Iterable[Study], place: Place, tell: Tell) -> Iterator[list[Row]]:
    """All rows so far, after each study; pretraining comes first."""
    studies = list(studies)
    starts = {name: each for study in studies for name, each in study.pretrainings().items()}
    with ProcessPoolExecutor(place.jobs, get_context("spawn"), initializer=_begin) as pool:
        for name, each in starts.items():
            tell(f"pretraining {name}: {each.steps} steps, unless it is finished")
        ready = [pool.submit(_pretrain, place, name, each) for name, each in starts.items()]
        rows = [beginning(name, Run.open(each.result())) for name, each in zip(starts, ready, strict=True)]
        for study in studies:
            rows += _study(study, place, pool, tell)
            yield rows


def _study(study: Study, place: Place, pool: ProcessPoolExecutor, tell: Tell) -> list[Row]:
    home = str(place.pretrained)
    searched = list(searches(study, home))
    tried = _all(pool, place, searched, tell)
    found: Found = {}
    for each in searched:
        if each.experiment.id in tried:
            validation = tried[each.experiment.id]["validation"]
            found.setdefault((each.arm, each.trial.fold), {})[each.setting] = validation
    jobs = [each for arm in study.arms for each in _trials(study, arm, found, home)]
    done = _all(pool, place, jobs, tell)
    rows = [row(each, done[each.experiment.id]) for each in jobs if each.experiment.id in done]
    return rows + [
        row(each, tried[each.experiment.id], role="search")
        for each in searched
        if each.experiment.id in tried
    ]


def _trials(study: Study, arm: Arm, found: Found, home: str) -> Iterator[Job]:
    """The test runs of an arm, each at the setting that did best on other emoji than it tests."""
    for trial in study.trials:
        tried = found.get((arm.rate or arm.name, CHOSEN_ON[trial.fold]), {})
        if not arm.trains or len(study.settings(arm)) == 1:
            yield job(study, arm, trial, study.settings(arm)[0], home)
        elif tried:
            yield job(study, arm, trial, best(tried), home)


def best(tried: Mapping[Setting, float]) -> Setting:
    """The setting with the highest validation accuracy; of equals the gentlest: the lowest rate, the largest λ."""
    return max(tried, key=lambda each: (tried[each], -each.rate, each.strength or 0.0))


def _all(pool: ProcessPoolExecutor, place: Place, jobs: list[Job], tell: Tell) -> dict[str, dict[str, Any]]:
    """What each run measured, by the id of its experiment; a run that fails is told of and left out."""
    wanted = {each.experiment.id: each for each in jobs}
    futures = {pool.submit(_finetune, place, each): key for key, each in wanted.items()}
    done = {}
    for count, future in enumerate(as_completed(futures), 1):
        each = wanted[futures[future]]
        try:
            done[futures[future]] = future.result()
        except UserError as error:
            tell(f"{each.study}: {each.arm} was refused: {error}")
            continue
        told = f"{each.study}: {each.arm}, fold {each.trial.fold}, lr {each.experiment.lr:g}"
        tell(f"{told}: validation {done[futures[future]]['validation']:.1%} ({count} of {len(futures)})")
    return done


def _finetune(place: Place, each: Job) -> dict[str, Any]:
    """One run, measured, and rid of what nobody will resume."""
    folder, watch = place.root / "runs" / each.experiment.id, Stopwatch()
    run = _carried(each.experiment, folder, watch)
    tested = measure(run, each.style, each.trial.fold, each.alphas, watch.seconds) if each.alphas else None
    for name in ("resume", "weights/student.safetensors", "weights/teacher.safetensors"):
        _remove(folder / name)
    return tested or chosen(run, watch.seconds)


def _pretrain(place: Place, name: str, experiment: Experiment) -> Path:
    """The run of a pretraining, which is refused if it is of other data or settings than today's; and its model."""
    run = _carried(experiment, place.root / "pretraining" / name, Stopwatch(), checkpoints=10)
    export(run.student(), place.pretrained / name)
    return run.folder


def _carried(experiment: Experiment, folder: Path, watch: Stopwatch, checkpoints: int = 1) -> Run:
    steps = experiment.steps or 1
    return carry(experiment, folder, watch, save_every=max(1, steps // checkpoints), evaluate_every=steps)


class Stopwatch:
    """Lets a run go on in silence, and counts the CPU time from its beginning to its last step."""

    def __init__(self) -> None:
        self.seconds: float | None = None

    def __call__(self, plan: Plan, reports: Iterator[Report]) -> None:
        begun = time.process_time()
        for report in reports:
            if report.loss is not None and report.step == plan.steps:
                self.seconds = time.process_time() - begun


def _begin() -> None:
    """One thread a process: sums then come in one order, and a run gives the same bits whoever runs beside it.

    A process ends with the one that began it, however that ends; the pool alone would let it wait for ever.
    """
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)  # the run goes on from its last checkpoint another time


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
