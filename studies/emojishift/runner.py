"""Run the studies: pretrain, search learning rates, run every trial. What is finished is not run again."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import torch

from studies.emojishift.cheaper_teachers import cheaper_teacher
from studies.emojishift.measure import measure, validation
from studies.emojishift.rows import Role, Row, pretraining_row, row
from studies.emojishift.study import CHOSEN_ON, Arm, Job, Setting, Study, job, searches
from tracer.api.run import Machine, Observer, run
from tracer.core.errors import UserError
from tracer.data.scan import Progress
from tracer.models.export import export
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run
from tracer.training.loop import Report

Log = Callable[[str], None]
Accuracies = dict[tuple[str, int], dict[Setting, float]]  # validation accuracies by arm and fold


class Workspace(NamedTuple):
    """The folder of runs and pretrained models, and the number of processes, each with one thread."""

    root: Path
    jobs: int = 1

    @property
    def pretrained(self) -> Path:
        return self.root / "pretrained"


def run_studies(
    studies: Iterable[Study], workspace: Workspace, log: Log, earlier: Iterable[Row] = ()
) -> Iterator[list[Row]]:
    """Yield all rows so far after each study; pretraining comes first. Rows of `earlier` are not run again."""
    studies, known = list(studies), {_key(each): each for each in earlier}
    starts = {name: each for study in studies for name, each in study.pretrainings().items()}
    ready = {each.arm: each for each in known.values() if each.role == "start"}
    tested = {(each.study, each.arm, each.fold, each.seed) for each in known.values() if each.role == "test"}
    incomplete = [
        study
        for study in studies
        if any((study.name, arm.name, *trial) not in tested for arm in study.arms for trial in study.trials)
    ]
    pool = ProcessPoolExecutor(workspace.jobs, get_context("spawn"), initializer=start_process)
    with pool, cheaper_teacher(""):  # so that the experiments of that study have ids
        futures = {}
        for name in {name: None for study in incomplete for name in study.pretrainings()}:
            log(f"pretraining {name}: {starts[name].steps} steps, unless it is finished")
            futures[name] = pool.submit(_pretrain, workspace, name, starts[name])
        for name, future in futures.items():
            start = pretraining_row(name, Run.open(future.result()))
            if ready.setdefault(name, start).validation != start.validation:
                raise UserError(f"pretraining {name} differs from that of the earlier rows; run all again")
        rows = [ready[name] for name in starts]
        for study in studies:
            rows += _study(study, workspace, pool, log, known)
            yield rows


def _key(row: Row) -> tuple[Any, ...]:
    return row.study, row.arm, row.role, row.fold, row.seed, row.rate, row.strength


def _study(
    study: Study, workspace: Workspace, pool: ProcessPoolExecutor, log: Log, known: Mapping[Any, Row]
) -> list[Row]:
    home = str(workspace.pretrained)
    searched = _rows(pool, workspace, list(searches(study, home)), "search", log, known)
    accuracies: Accuracies = {}
    for each in searched:
        setting = Setting(each.rate, each.strength)
        accuracies.setdefault((each.arm, each.fold), {})[setting] = each.validation
    jobs = [each for arm in study.arms for each in _trials(study, arm, accuracies, home)]
    return _rows(pool, workspace, jobs, "test", log, known) + searched


def _trials(study: Study, arm: Arm, accuracies: Accuracies, home: str) -> Iterator[Job]:
    """The test runs of an arm, each at the setting of best validation accuracy on emoji that it does not test."""
    for trial in study.trials:
        tried = accuracies.get((arm.rate or arm.name, CHOSEN_ON[trial.fold]), {})
        if not arm.trains or len(study.settings(arm)) == 1:
            yield job(study, arm, trial, study.settings(arm)[0], home)
        elif tried:
            yield job(study, arm, trial, best(tried), home)


def best(tried: Mapping[Setting, float]) -> Setting:
    """The setting of highest validation accuracy; ties go to the lowest learning rate, then to the largest λ."""
    return max(tried, key=lambda each: (tried[each], -each.rate, each.strength or 0.0))


def _rows(
    pool: ProcessPoolExecutor,
    workspace: Workspace,
    jobs: list[Job],
    role: Role,
    log: Log,
    known: Mapping[Any, Row],
) -> list[Row]:
    """The row of each job, run unless it is known; a run that is refused is logged and left out."""
    keys = [
        (each.study, each.arm, role, *each.trial, each.setting.rate, each.setting.strength) for each in jobs
    ]
    by_id = {each.experiment.id: each for key, each in zip(keys, jobs, strict=True) if key not in known}
    futures = {pool.submit(_finetune, workspace, each): key for key, each in by_id.items()}
    done = {}
    for count, future in enumerate(as_completed(futures), 1):
        each = by_id[futures[future]]
        try:
            done[futures[future]] = future.result()
        except UserError as error:
            log(f"{each.study}: {each.arm} was refused: {error}")
            continue
        label = f"{each.study}: {each.arm}, fold {each.trial.fold}, lr {each.experiment.lr:g}"
        log(f"{label}: validation {done[futures[future]]['validation']:.1%} ({count} of {len(futures)})")
    rows = (
        known.get(key) or (row(each, done[each.experiment.id], role) if each.experiment.id in done else None)
        for key, each in zip(keys, jobs, strict=True)
    )
    return [each for each in rows if each]


def _finetune(workspace: Workspace, each: Job) -> dict[str, Any]:
    """Train and measure one run; its checkpoints and spare weights are removed."""
    with cheaper_teacher(each.experiment.method):
        folder, watch = workspace.root / "runs" / each.experiment.id, Stopwatch()
        finished = carried(each.experiment, folder, watch)
    tested = (
        measure(finished, each.style, each.trial.fold, each.alphas, watch.seconds) if each.alphas else None
    )
    for name in ("resume", "weights/student.safetensors", "weights/teacher.safetensors"):
        remove(folder / name)
    return tested or validation(finished, watch.seconds)


def _pretrain(workspace: Workspace, name: str, experiment: Experiment) -> Path:
    """Pretrain and export the model; a finished run of other data or settings in the same folder is refused."""
    finished = carried(experiment, workspace.root / "pretraining" / name, Stopwatch(), checkpoints=10)
    export(finished.student(), workspace.pretrained / name)
    return finished.folder


def carried(experiment: Experiment, folder: Path, watch: Stopwatch, checkpoints: int = 1) -> Run:
    """The finished run of an experiment, on the CPU."""
    steps = experiment.steps or 1
    machine = Machine(device="cpu", workers=0, save_every=max(1, steps // checkpoints))
    observer = Observer(scan=watch.scan, report=watch.report, note=lambda text: None)
    return run(experiment, folder, machine, observer, evaluate_every=steps)


class Stopwatch:
    """Measures the CPU time of a run from the end of the scan of its images to its last step."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self._start = time.process_time()

    @contextmanager
    def scan(self, world: World) -> Iterator[Progress]:
        del world
        yield lambda done, total: None
        self._start = time.process_time()

    def report(self, report: Report) -> None:
        if report.loss is not None and report.step == report.steps:
            self.seconds = time.process_time() - self._start


def start_process() -> None:
    """One thread, so that sums have a fixed order and a run gives the same bits whatever runs beside it.

    The process ends with its parent, however that ends; the pool alone would leave it waiting for ever.
    """
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)  # the run can be resumed from its last checkpoint


def remove(path: Path) -> None:
    """Remove a file or folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
