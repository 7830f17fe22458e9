"""A run directory: the unit of truth. Whoever has the folder can resume, evaluate, export and report it."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracer.storage.atomic import write_file, write_json
from tracer.core.errors import UserError
from tracer.runs.experiment import Experiment
from tracer.models.student import Student, Weights, initialise_from, load, read_weights
from tracer.storage.provenance import commit, versions
from tracer.runs.plan import Plan
from tracer.runs.record import Recorder
from tracer.storage.checksum import add_checksum, verify_checksum
from tracer.storage.safetensors_io import digest, write_weights
from tracer.models.registry import locate, pretrained_tag

DESCRIPTION = "experiment.json"


class Run:
    """`experiment.json`, `log.jsonl`, `weights/`, `resume/`, and `result.json` once it has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorder = Recorder(folder / "log.jsonl")
        self.resume = folder / "resume"

    @classmethod
    def create(cls, plan: Plan, folder: Path | None = None) -> Run:
        """A new run; a folder that holds one already is never overwritten."""
        folder = home(plan, folder)
        if (folder / DESCRIPTION).exists():
            run = cls.open(folder)
            run.require(plan)
            hint = "it is finished" if run.finished else f"go on with: tracer resume {folder}"
            raise UserError(f"this experiment is already in {folder}: {hint}")
        # What is hidden was left by a process that was killed while it began.
        if any(not file.name.startswith(".") for file in folder.glob("*")):
            raise UserError(f"{folder} is not empty and holds no run: choose another --out")
        try:
            write_json(folder / DESCRIPTION, add_checksum(describe(plan)))
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}") from None
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> Run:
        """A run that exists."""
        if not (folder / DESCRIPTION).is_file():
            raise UserError(f"{folder} is not a run: it has no {DESCRIPTION}")
        run = cls(folder)
        run.description  # noqa: B018  (an unreadable description is an error now, not later)
        return run

    @property
    def description(self) -> dict[str, Any]:
        try:
            found = verify_checksum((self.folder / DESCRIPTION).read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise UserError(f"{self.folder / DESCRIPTION} is not readable: {error}") from None
        if missing := [name for name in ("id", "experiment", "classes") if name not in found]:
            raise UserError(f"{self.folder / DESCRIPTION} does not describe a run: it has no {missing[0]}")
        return found

    @property
    def experiment(self) -> Experiment:
        return Experiment.from_json(self.description["experiment"])

    def require(self, plan: Plan) -> None:
        """Refuse to go on with this run, or to take it for finished, as that of another plan."""
        if self.description["id"] != identity(plan):
            told = (
                f"{self.folder} holds another experiment ({self.description['id']}), or its data have changed"
            )
            raise UserError(f"{told}: choose another --out")
        self._require_start()

    def _require_start(self) -> None:
        """Refuse weights that were replaced since the run began, under the name that they had."""
        began, experiment = self.description.get("start"), self.experiment
        if began is not None and began != start(experiment):
            told = f"{experiment.model} has other weights than when {self.folder} began"
            raise UserError(f"{told}: give the new ones a name of their own, or choose another --out")

    @property
    def finished(self) -> bool:
        return (self.folder / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        """What came out; empty while the run goes on."""
        try:
            return (
                verify_checksum((self.folder / "result.json").read_text(encoding="utf-8")) if self.finished else {}
            )
        except (ValueError, OSError) as error:
            raise UserError(f"{self.folder / 'result.json'} is not readable: {error}") from None

    def weights_file(self, name: str) -> Path:
        return self.folder / "weights" / f"{name}.safetensors"

    def keep(self, name: str, weights: Weights) -> None:
        """Write named weights, whole or not at all."""
        write_file(self.weights_file(name), lambda beside: write_weights(beside, weights))

    def student(self, name: str = "result") -> Student:
        """The model with this run's weights: "result", "student", "teacher", or "pretrained" as it started."""
        experiment = self.experiment
        if name == "pretrained":
            self._require_start()
        student = load(
            experiment.model, pretrained_tag(experiment.model, experiment.pretrained), seed=experiment.seed
        )
        if name == "pretrained":
            return student
        if not self.weights_file(name).exists():
            there = sorted(file.stem for file in (self.folder / "weights").glob("*.safetensors"))
            raise UserError(f"{self.folder} has no {name} weights; it has: {', '.join(there) or 'none yet'}")
        initialise_from(student, read_weights(self.weights_file(name)))
        return student

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process out of this folder for as long as the block runs."""
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"another process is working on {self.folder}") from None
            yield


def home(plan: Plan, folder: Path | None = None) -> Path:
    """Where a run of this plan lives."""
    return folder or Path("runs") / identity(plan)


def identity(plan: Plan) -> str:
    """The experiment and the data it was given, as a short hash."""
    parts = [plan.experiment.id, plan.train.fingerprint, plan.held_out.fingerprint]
    if plan.anchors is not None:
        parts.append(plan.anchors.fingerprint)
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=5).hexdigest()


def start(experiment: Experiment) -> str | None:
    """A hash of the weights that training begins with, where they are a file: names stay, files are replaced."""
    place = locate(experiment.model, pretrained_tag(experiment.model, experiment.pretrained))
    return digest(place.file) if place.file else None


def describe(plan: Plan) -> dict[str, Any]:
    """What was run, on what, with which versions."""
    data = {"name": plan.train.name, "train": len(plan.train), "held_out": len(plan.held_out)}
    return {
        "id": identity(plan),
        "experiment": plan.experiment.to_json(),
        "start": start(plan.experiment),
        "steps": plan.steps,
        "data": {
            **data,
            "fingerprint": plan.train.fingerprint,
            "held_out_fingerprint": plan.held_out.fingerprint,
        },
        "classes": list(plan.train.classes),
        "versions": versions(),
        "git": commit(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
