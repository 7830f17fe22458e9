"""Start the workers of a sweep and report its progress."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer.runs.record import read
from tracer.sweep.product import Sweep
from tracer.sweep.worker import FAILED, complete, ended, read_again


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep; `share` is the fraction of all runs that is done, counted in steps."""

    total: int
    done: int
    failed: tuple[Path, ...]
    share: float
    starting: bool = False  # the initial model is not finished yet
    seconds_left: float | None = None
    crashed: tuple[Path, ...] = ()  # logs of workers that ended with an error


def sweep_progress(sweep: Sweep, folder: Path) -> SweepProgress:
    """The progress of a sweep, read from the folders of its runs."""
    runs = list(sweep.by_folder(folder))
    failed = tuple(run for run in runs if (run / FAILED).exists())
    done = sum(complete(run, sweep.tests) for run in runs if run not in failed)
    start = [folder / "start"] if sweep.start else []  # the run of the initial model, not in the tables
    share = sum(_share(run) for run in [*start, *runs]) / (len(start) + len(runs))
    starting = not all((run / "result.json").exists() for run in start)
    return SweepProgress(len(runs), done, failed, share, starting)


def _share(run: Path) -> float:
    """The fraction of a run's steps that its log contains."""
    if ended(run):
        return 1.0
    try:
        steps = json.loads((run / "experiment.json").read_text())["steps"]
        last = max((entry["step"] for entry in read(run / "log.jsonl")), default=0)
        return max(0.0, min(1.0, last / steps))
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return 0.0


def supervise(sweep: Sweep, folder: Path, command: Sequence[str], jobs: int) -> Iterator[SweepProgress]:
    """Start `jobs` workers and yield the progress until all have ended; failed runs are tried again."""
    for run in sweep.by_folder(folder):
        (run / FAILED).unlink(missing_ok=True)
    first = sweep_progress(sweep, folder)
    started, jobs = time.monotonic(), min(jobs, first.total - first.done)
    workers = [_worker(folder, command, index, jobs) for index in range(jobs)]
    try:
        while any(worker.poll() is None for worker in workers):
            now = sweep_progress(sweep, folder)
            done, elapsed = now.share - first.share, time.monotonic() - started
            left = elapsed * (1 - now.share) / done if done > 0.005 else None
            yield replace(now, seconds_left=left)
            time.sleep(1.0)
    finally:
        for worker in workers:
            worker.terminate()  # a worker saves its run before it exits
        for worker in workers:
            worker.wait()
    read_again()
    logs = tuple(_log(folder, index) for index, worker in enumerate(workers) if worker.returncode)
    yield replace(sweep_progress(sweep, folder), crashed=logs)


def _worker(folder: Path, command: Sequence[str], index: int, jobs: int) -> subprocess.Popen[bytes]:
    """Start a worker with an equal part of the CPU cores and, in turn, one of the GPUs."""
    log = _log(folder, index)
    log.parent.mkdir(parents=True, exist_ok=True)
    environment: dict[str, Any] = dict(os.environ)
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if len(gpus) > 1:
        environment["CUDA_VISIBLE_DEVICES"] = gpus[index % len(gpus)]
    with log.open("wb") as file:
        return subprocess.Popen(list(command), stdout=file, stderr=file, env=environment)


def _log(folder: Path, index: int) -> Path:
    return folder / ".logs" / f"worker-{index}.log"
