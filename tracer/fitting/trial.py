"""A trial: an ordinary run of one candidate, scored along the mixtures of its weights with the pretrained ones."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tracer.api.run import Machine, Observer, run
from tracer.core.errors import NonFinite, NotAdaptable
from tracer.evaluation.measured import compared_indices
from tracer.fitting.budget import Speed, Spent
from tracer.fitting.candidates import Candidate
from tracer.fitting.choice import Point
from tracer.fitting.parts import Parts
from tracer.merging.choose import sweep
from tracer.merging.evaluator import Evaluator, Scores
from tracer.merging.run_group import run_group
from tracer.merging.wise import interpolate
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.record import read
from tracer.runs.run import Run
from tracer.storage.atomic import write_json, write_text
from tracer.storage.checksum import add_checksum, verify_checksum
from tracer.sweep.worker import FAILED
from tracer.training.loop import Report

ALPHAS = (0.1, 0.25, 0.5, 0.75, 1.0)
FILE = "path.json"
AGREEMENT = "ImageNet names of the pretrained model"
SPARE = ("resume", "weights/student.safetensors", "weights/teacher.safetensors")


@dataclass(frozen=True)
class Trial:
    """A candidate with a number of steps, and the folder of its run."""

    candidate: Candidate
    experiment: Experiment
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def steps(self) -> int:
        return self.experiment.steps or 0

    @property
    def spent(self) -> Spent:
        """What it took, once it has ended well."""
        state = self.read()
        return Spent(self.steps * self.candidate.cost, state["training"], state["other"])

    def price(self, speed: Speed) -> float:
        """The seconds that it takes at this speed."""
        return speed.trial(self.steps, self.candidate.cost)

    def __str__(self) -> str:
        return f"{self.candidate}, {self.steps} steps" if self.candidate.has_rate else str(self.candidate)

    @property
    def failed(self) -> bool:
        return (self.folder / FAILED).exists()

    @property
    def failure(self) -> str:
        """Why it failed."""
        return (self.folder / FAILED).read_text(encoding="utf-8", errors="replace").strip()

    @property
    def ended(self) -> bool:
        return self.failed or bool(self.read())

    @property
    def run(self) -> Run:
        return Run.open(self.folder)

    def read(self) -> dict[str, Any]:
        """The scores in the folder; empty if there are none or they are damaged, so that they are measured again."""
        return read_state(self.folder / FILE)

    def path(self, parts: Parts) -> list[Point]:
        """The mixtures of a trial that has ended; none of one that failed."""
        if self.failed:
            return []
        frozen = not self.candidate.has_rate and not parts.retained_by_head
        return [_point(self.name, row)._replace(frozen=frozen) for row in self.read()["points"]]

    def before(self) -> Point:
        """The pretrained model, as this trial measured it."""
        return _point("pretrained", self.read()["before"])

    def carry_out(self, parts: Parts, machine: Machine, observe: Callable[[Report], object]) -> None:
        """Train and score it, or go on with it; if it cannot be trained or scored, write the reason to FAILED.

        A full disk or a signal is no property of the trial: it ends the search, which the same command takes up again.
        """
        start, earlier = time.monotonic(), training_seconds(self.folder)
        quiet = Observer(report=observe, warn=lambda message: None, again="the same tracer fit")
        try:
            finished = run(self.experiment, self.folder, machine, quiet, evaluate_every=max(1, self.steps))
            before, points = score(finished, parts, machine.device)
        except (NonFinite, NotAdaptable) as error:  # at a high rate, or with towers that have no blocks
            write_text(self.folder / FAILED, f"{error}\n")
            return
        training, rows = training_seconds(self.folder), [_row(alpha, each) for alpha, each in points.items()]
        seconds = {"training": training, "other": time.monotonic() - start - (training - earlier)}
        write_state(self.folder / FILE, {**seconds, "before": _row(0.0, before), "points": rows})
        for name in SPARE:  # only the result can be chosen, and there are many trials
            spare = self.folder / name
            shutil.rmtree(spare) if spare.is_dir() else spare.unlink(missing_ok=True)


def training_seconds(folder: Path) -> float:
    """Seconds of the batches and steps of a run so far, in all of its sessions."""
    log = folder / "log.jsonl"
    return sum(line["data"] + line["steps"] for line in read(log, "time")) if log.exists() else 0.0


def score(finished: Run, parts: Parts, device: str) -> tuple[Scores, Mapping[float, Scores]]:
    """The scores of the pretrained model, and of each mixture; those of a run without training at α = 1 only."""
    group = run_group([finished])
    evaluator = Evaluator(group, World(device, "fp32"), retain=parts.retain, compare=not parts.retain)
    alphas = ALPHAS if finished.experiment.method != "zeroshot" else ()
    return evaluator.before, dict(sweep(alphas, partial(interpolate, group.start, group.end), evaluator))


def write_state(path: Path, value: dict[str, Any]) -> None:
    """Replace a file of a search atomically: a JSON object with a checksum."""
    write_json(path, add_checksum(value))


def read_state(path: Path) -> dict[str, Any]:
    """What `write_state` wrote; empty if there is no such file or it is damaged, so that its content is made again."""
    try:
        return verify_checksum(path.read_text(encoding="utf-8"), required=True)
    except (FileNotFoundError, ValueError):
        return {}


def _row(alpha: float, scores: Scores) -> dict[str, Any]:
    def bits(hits: Sequence[bool]) -> str:
        return "".join("1" if hit else "0" for hit in hits)

    kept = scores.retained_hits
    if not kept:  # agreement is a share of images on which the pretrained model is right by definition
        count = len(compared_indices(len(scores.hits)))
        same = round(scores.agreement * count)
        kept = {AGREEMENT: [True] * same + [False] * (count - same)}
    return {
        "alpha": alpha,
        "accuracy": scores.accuracy,
        "hits": bits(scores.hits),
        "kept": {name: bits(hits) for name, hits in kept.items()},
    }


def _point(trial: str, row: Mapping[str, Any]) -> Point:
    kept = {name: [bit == "1" for bit in bits] for name, bits in row["kept"].items()}
    return Point(trial, row["alpha"], [bit == "1" for bit in row["hits"]], kept)
