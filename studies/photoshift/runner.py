"""Run the jobs of a study in processes of one thread each; what is measured is not run again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from studies.emojishift.measure import FILE, gap, layers, scored, summary, validation
from studies.emojishift.runner import Log, Stopwatch, carried, remove, start_process
from studies.photoshift.bridge import bridge
from studies.photoshift.rows import ZERO_SHOT, PhotoRow, row
from studies.photoshift.study import Job, Setting
from studies.photoshift.tasks import TASKS, suite_of
from tracer.core.errors import UserError
from tracer.core.metrics import agreement
from tracer.data.examples import Examples
from tracer.evaluation.measured import imagenet_logits
from tracer.evaluation.predict import Scorer
from tracer.evaluation.suites.shift import Suite
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.storage.atomic import write_json


class Workspace(NamedTuple):
    """The folder of packages, models and arrays, the folder of the runs, and the number of processes."""

    cache: Path
    runs: Path
    processes: int = 2


def run_jobs(jobs: Iterable[Job], workspace: Workspace, log: Log) -> Iterator[PhotoRow]:
    """The row of each job, as it finishes; the zero-shot rows of each task and seed come first."""
    jobs = list(jobs)
    starts = {(job.task, job.seed): job._replace(arm=ZERO_SHOT, setting=Setting(0.0)) for job in jobs}
    with ProcessPoolExecutor(workspace.processes, get_context("spawn"), initializer=start_process) as pool:
        before = {job.task: pool.submit(zero_shot, workspace, job) for job in starts.values()}
        futures = {pool.submit(measured, workspace, job): job for job in jobs}
        for job in starts.values():
            command = f"python -m studies.photoshift build --size {job.scale.size}"
            yield row(job, before[job.task].result())._replace(command=command)
        for count, future in enumerate(as_completed(futures), 1):
            job = futures[future]
            try:
                measures = future.result()
            except UserError as error:
                log(f"{job.name} was refused: {error}")
                continue
            log(f"{job.name}: validation {measures['validation']:.1%} ({count} of {len(futures)})")
            yield row(job, measures)


def measured(workspace: Workspace, job: Job) -> dict[str, Any]:
    """The measurements of a run, kept in a file in its folder; its weights are removed then."""
    folder = workspace.runs / job.name
    file = folder / FILE
    if not file.exists():
        watch = Stopwatch()
        finished = carried(job.experiment(workspace.cache), folder, watch)
        suite = suite_of(job.task, workspace.cache)
        scores = {
            f"{alpha:g}": with_roles(each, suite) for alpha, each in scored(finished, suite, job.scale.alphas)
        }
        measures = {
            **validation(finished, watch.seconds),
            "gap": gap(folder),
            "agreement": names_agreement(finished),
            "layers": layers(finished, held_out_of(finished)) if job.layers else {},
            "scores": scores,
        }
        write_json(file, measures)
        for name in ("resume", "weights", "predictions"):
            remove(folder / name)
    return json.loads(file.read_text(encoding="utf-8"))


def held_out_of(finished: Run) -> Examples:
    """The images that a run held out."""
    return plan(finished.experiment, check_images=False).held_out


def names_agreement(finished: Run) -> float:
    """The share of held-out images to which a run's result gives the same of ImageNet's names as its start."""
    experiment, held_out = finished.experiment, held_out_of(finished)
    key = experiment.model, experiment.held_out
    if key not in _names_before:
        _names_before[key] = _names_logits(finished.student("pretrained"), held_out)
    return agreement(_names_before[key], _names_logits(finished.student("result"), held_out))


_names_before: dict[
    tuple[str | None, str | None], Tensor
] = {}  # of the start, which all runs of a task and seed share


def _names_logits(student: Student, held_out: Examples) -> Tensor:
    world = World("cpu", "fp32")
    world.place(student)
    scorer = Scorer(student, world, workers=0)
    return imagenet_logits(scorer, scorer.embed(held_out))


def zero_shot(workspace: Workspace, job: Job) -> dict[str, Any]:
    """The measurements of a job's model before training."""
    file = workspace.runs / f"start-{job.task}-{job.scale.size}px.json".replace(" ", "_")
    with suppress(OSError):
        return json.loads(file.read_text(encoding="utf-8"))
    suite, world = suite_of(job.task, workspace.cache), World("cpu", "fp32")
    student = load(str(bridge(workspace.cache, job.scale.size, TASKS[job.task].names)))
    world.place(student)
    scorer = Scorer(student, world, workers=0)
    answers = {each.shift.name: summary(scorer, each) for each in suite.open()}
    measures = {
        "validation": 0.0,
        "cpu_seconds": None,
        "commit": None,
        "gap": {},
        "agreement": 1.0,
        "scores": {"1": with_roles(answers, suite)},
    }
    write_json(file, measures)
    return measures


def with_roles(scores: dict[str, Any], suite: Suite) -> dict[str, Any]:
    """The scores of each test set with its role; "" for the corrupted pictures."""
    role = {each.name: "" if each.derived else each.role for each in suite.shifts}
    return {name: {**each, "role": role[name]} for name, each in scores.items()}
