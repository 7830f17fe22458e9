"""Workers on one sweep, and how far all of it has come."""

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
from tracer.sweep.worker import FAILED, ended


@dataclass(frozen=True)
class Standing:
    """Where a sweep stands; `share` counts steps, so that a long run weighs as it should."""

    total: int
    done: int
    failed: tuple[Path, ...]
    share: float
    starting: bool = False  # the model that all of them begin from is still being made
    seconds_left: float | None = None
    crashed: tuple[Path, ...] = ()  # logs of workers that ended by an error of their own


def standing(sweep: Sweep, folder: Path) -> Standing:
    """Read off the runs' folders, whoever works on them."""
    places = list(sweep.placed(folder))
    failed = tuple(place for place in places if (place / FAILED).exists())
    done = sum((place / "result.json").exists() for place in places)
    start = [folder / "start"] if sweep.start else []  # one more run, with no row in the tables
    share = sum(_share(place) for place in [*start, *places]) / (len(start) + len(places))
    starting = not all((place / "result.json").exists() for place in start)
    return Standing(len(places), done, failed, share, starting)


def _share(place: Path) -> float:
    """How much of a run is done, by its own log."""
    if ended(place):
        return 1.0
    try:
        steps = json.loads((place / "experiment.json").read_text())["steps"]
        last = max((entry["step"] for entry in read(place / "log.jsonl")), default=0)
        return max(0.0, min(1.0, last / steps))
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return 0.0


def oversee(
    sweep: Sweep, folder: Path, command: Sequence[str], jobs: int, pause: float = 1.0
) -> Iterator[Standing]:
    """Start `jobs` workers and tell how it goes until they have all ended; what failed before is tried again."""
    for place in sweep.placed(folder):
        (place / FAILED).unlink(missing_ok=True)
    then = standing(sweep, folder)
    began, jobs = time.monotonic(), min(jobs, then.total - then.done)
    workers = [_worker(folder, command, index, jobs) for index in range(jobs)]
    try:
        while any(worker.poll() is None for worker in workers):
            now = standing(sweep, folder)
            yield replace(now, seconds_left=_left(began, then.share, now.share))
            time.sleep(pause)
    finally:
        for worker in workers:
            worker.terminate()  # a worker saves its run before it goes
        for worker in workers:
            worker.wait()
    logs = tuple(_log(folder, index) for index, worker in enumerate(workers) if worker.returncode)
    yield replace(standing(sweep, folder), crashed=logs)


def _left(began: float, first: float, share: float) -> float | None:
    gained = share - first
    return (time.monotonic() - began) * (1 - share) / gained if gained > 0.005 else None


def _worker(folder: Path, command: Sequence[str], index: int, jobs: int) -> subprocess.Popen[bytes]:
    """A worker with its share of the processors and, in turn, a graphics card of its own."""
    log = _log(folder, index)
    log.parent.mkdir(parents=True, exist_ok=True)
    environment: dict[str, Any] = dict(os.environ)
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    cards = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if len(cards) > 1:
        environment["CUDA_VISIBLE_DEVICES"] = cards[index % len(cards)]
    with log.open("wb") as file:
        return subprocess.Popen(list(command), stdout=file, stderr=file, env=environment)


def _log(folder: Path, index: int) -> Path:
    return folder / ".logs" / f"worker-{index}.log"
