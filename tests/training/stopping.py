"""Stops runs with signals, resumes some, and reports what happened.

Runs are forked from the test process, which has imported everything, each in a process group of its own, as a scheduler
or a shell would start it. Each takes `STEPS` slowed steps, so that the signal arrives in the middle.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from studies.faults.process import CommandProcess
from tracer.cli.app import main
from tracer.training.learner import Learner
from tracer.training.watch import Watch

STEPS = 12
PAUSE = 0.1  # seconds that a step takes
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT)
MODEL = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 28, "layers": 1, "width": 16, "head_width": 8, "patch_size": 14},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 4, "heads": 1, "layers": 1},
}


def prepare(folder: Path) -> None:
    noise = np.random.default_rng(0)
    for name, i in product(("dark", "bright"), range(12)):
        (folder / "photos" / name).mkdir(parents=True, exist_ok=True)
        pixels = noise.integers(0, 256, (28, 28, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / name / f"{i}.png")
    (folder / "minute.json").write_text(json.dumps(MODEL))


def training(folder: Path, name: str, workers: int) -> list[str]:
    photos = str(folder / "photos")
    return [
        *("train", "--data", photos, "--held-out", photos, "--model", str(folder / "minute.json")),
        *(
            "--pretrained",
            "none",
            "--templates",
            "name",
            "--steps",
            str(STEPS),
            "--batch",
            "8",
            "--lr",
            "1e-3",
        ),
        *("--device", "cpu", "--workers", str(workers), "--out", str(folder / name)),
    ]


def resuming(run: Path) -> list[str]:
    return ["resume", str(run), "--device", "cpu", "--workers", "0"]


class Child:
    """A forked process that runs the command `tracer` in a process group of its own."""

    def __init__(self, run: Path, arguments: list[str], before: Callable[[], object] = lambda: None) -> None:
        self.run, self.process = run, CommandProcess(arguments, lambda: (os.setpgid(0, 0), before()))
        self.pid = self.process.child

    def has(self, kind: str) -> bool:
        """Whether a line of this kind is in its log; the next step takes a while."""
        log = self.run / "log.jsonl"
        return log.exists() and f'"{kind}"' in log.read_text()

    def training(self) -> bool:
        """Whether it has taken a step; an evaluation follows some steps later."""
        return self.has("train")

    def workers(self) -> list[int]:
        """Its child processes."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def facts(self) -> dict[str, Any]:
        """Exit code, output and checkpoints."""
        ended = self.process.wait()
        saved = [int(place.name[5:]) for place in sorted((self.run / "resume").glob("step-*"))]
        return {"code": ended.code, "told": ended.output, "saved": saved}


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def slow() -> None:
    """Let each step take a while."""
    step = Learner.step
    Learner.step = lambda self, number, batch: (time.sleep(PAUSE), step(self, number, batch))[1]


def slow_evaluation() -> None:
    """Let an evaluation take far longer than a scheduler waits."""
    slow()
    evaluate = Watch.evaluate
    Watch.evaluate = lambda self, state, step: (time.sleep(100), evaluate(self, state, step))[1]


def ignoring() -> None:
    """As under nohup."""
    slow()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def hashes(run: Path) -> dict[str, str]:
    return {f.name: blake2b(f.read_bytes()).hexdigest() for f in sorted((run / "weights").iterdir())}


def stopped(folder: Path, workers: int, whole_group: bool) -> dict[str, Any]:
    """Each signal, to a process or to its group; some of the runs are resumed to their end."""
    names = [f"{number.name} {'group' if whole_group else 'process'} {workers}" for number in SIGNALS]
    children = [Child(folder / name, training(folder, name, workers), slow) for name in names]
    for child, number in zip(children, SIGNALS, strict=True):
        wait_until(child.training)
        (os.killpg if whole_group else os.kill)(child.pid, number)
    facts = {name: child.facts() for name, child in zip(names, children, strict=True)}
    if not (workers and whole_group):
        return facts
    resumed = [Child(child.run, resuming(child.run)) for child in children]
    for name, child in zip(names, resumed, strict=True):
        facts[name] |= {"resumed": child.process.wait().code, "weights": hashes(child.run)}
    return facts


def killed(folder: Path) -> dict[str, Any]:
    """SIGKILL of a run with workers, which survive it for seconds; it is resumed at once."""
    child = Child(folder / "killed", training(folder, "killed", 2), slow)
    wait_until(child.training)
    workers = child.workers()
    os.kill(child.pid, signal.SIGKILL)
    facts = {**child.facts(), "workers": len(workers)}
    resumed = Child(child.run, resuming(child.run)).process.wait()
    return {**facts, "resumed": resumed.code, "told": resumed.output, "weights": hashes(child.run)}


def bereft(folder: Path) -> dict[str, Any]:
    """SIGKILL of a loader worker, as by the system when memory runs out."""
    arguments = [*training(folder, "bereft", 2), "--save-every", "1"]
    child = Child(folder / "bereft", arguments, slow)
    wait_until(lambda: any((child.run / "resume").glob("step-*")))
    os.kill(child.workers()[0], signal.SIGKILL)
    return child.facts()


def one(
    folder: Path, name: str, before: Callable[[], object], numbers: list[signal.Signals]
) -> dict[str, Any]:
    """Signals to one run, a moment apart."""
    child = Child(folder / name, training(folder, name, 0), before)
    wait_until(lambda: child.has("train"))
    for number in numbers:
        time.sleep(2 * PAUSE)
        os.kill(child.pid, number)
    begun = time.monotonic()
    return {**child.facts(), "seconds": time.monotonic() - begun}


def everything(folder: Path) -> dict[str, Any]:
    """What happened to each run, by its name."""
    prepare(folder)
    assert main(training(folder, "peaceful", 0)) == 0  # here, so that the others are forked with full caches
    facts: dict[str, Any] = {"peaceful": {"weights": hashes(folder / "peaceful")}}
    for workers, whole_group in product((0, 2), (False, True)):
        facts |= stopped(folder, workers, whole_group)
    facts["killed"] = killed(folder)
    facts["bereft"] = bereft(folder)
    facts["evaluating"] = one(folder, "evaluating", slow_evaluation, [signal.SIGTERM])
    facts["ignored"] = one(folder, "ignored", ignoring, [signal.SIGHUP])
    facts["twice"] = one(folder, "twice", slow, [signal.SIGTERM, signal.SIGTERM])
    return facts
