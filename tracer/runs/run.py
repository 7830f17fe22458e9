"""The folder of a run. It is all that is needed to resume, evaluate, export and report the run."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.models.registry import locate, pretrained_tag
from tracer.models.student import Student, Weights, initialise_from, load, read_weights
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan
from tracer.runs.record import Recorder
from tracer.storage.atomic import write_file, write_json
from tracer.storage.checksum import add_checksum, verify_checksum
from tracer.storage.provenance import commit, versions
from tracer.storage.safetensors_io import file_blake2b, write_weights

DESCRIPTION = "experiment.json"


class Run:
    """`experiment.json`, `log.jsonl`, `weights/`, `resume/`, and `result.json` once the run is finished.

    `weights` names the weights that are used by default: those of the result, or of a merge.
    """

    def __init__(self, folder: Path, weights: str = "result") -> None:
        self.folder, self.weights = folder, weights
        self.recorder = Recorder(folder / "log.jsonl")
        self.resume = folder / "resume"

    @classmethod
    def create(cls, plan: Plan, folder: Path | None = None) -> Run:
        """Create the folder of a new run. Raises if the folder holds a run or other files."""
        folder = home(plan, folder)
        if (folder / DESCRIPTION).exists():
            run = cls.open(folder)
            run.require(plan)
            hint = "it is finished" if run.finished else f"go on with: tracer resume {folder}"
            raise UserError(f"this experiment is already in {folder}: {hint}")
        # Hidden files may be left by a process that was killed while it created the run.
        if any(not file.name.startswith(".") for file in folder.glob("*")):
            raise UserError(f"{folder} is not empty and holds no run: choose another --out")
        try:
            write_json(folder / DESCRIPTION, add_checksum(describe(plan)))
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}") from None
        return cls(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether the folder holds a run, finished or not."""
        return (folder / DESCRIPTION).is_file()

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run in a folder."""
        if not cls.exists(folder):
            raise UserError(f"{folder} is not a run: it has no {DESCRIPTION}")
        run = cls(folder)
        run.description  # noqa: B018  (raise now if the description is unreadable)
        return run

    @property
    def description(self) -> dict[str, Any]:
        try:
            description = verify_checksum((self.folder / DESCRIPTION).read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise UserError(f"{self.folder / DESCRIPTION} is not readable: {error}") from None
        if missing := [name for name in ("id", "experiment", "classes") if name not in description]:
            raise UserError(f"{self.folder / DESCRIPTION} does not describe a run: it has no {missing[0]}")
        return description

    @property
    def experiment(self) -> Experiment:
        return Experiment.from_json(self.description["experiment"])

    def require(self, plan: Plan) -> None:
        """Raise unless this run is one of `plan`: the same experiment, data and pretrained weights."""
        if self.description["id"] != identity(plan):
            raise UserError(
                f"{self.folder} holds another experiment ({self.description['id']}), or its data have changed: "
                "choose another --out"
            )
        self._require_start()

    def _require_start(self) -> None:
        """Raise if the pretrained weights were replaced under their name since the run began."""
        checksum, experiment = self.description.get("start"), self.experiment
        if checksum is not None and checksum != start(experiment):
            raise UserError(
                f"{experiment.model} has other weights than when {self.folder} began: give the new ones a name of "
                "their own, or choose another --out"
            )

    @property
    def finished(self) -> bool:
        return (self.folder / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        """The contents of `result.json`; empty if the run is not finished."""
        if not self.finished:
            return {}
        try:
            return verify_checksum((self.folder / "result.json").read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise UserError(f"{self.folder / 'result.json'} is not readable: {error}") from None

    def weights_file(self, name: str) -> Path:
        return self.folder / "weights" / f"{name}.safetensors"

    def keep(self, name: str, weights: Weights) -> None:
        """Write named weights, atomically."""
        write_file(self.weights_file(name), lambda file: write_weights(file, weights))

    def __repr__(self) -> str:
        state = "finished" if self.finished else "not finished"
        return f"Run({str(self.folder)!r}, {self.weights!r}): {self.experiment.method}, {state}"

    def student(self, name: str | None = None) -> Student:
        """The model with weights of this run: result, student, teacher, pretrained, or the name of a merge."""
        name = name or self.weights
        experiment = self.experiment
        if name == "pretrained":
            self._require_start()
        student = load(
            experiment.model, pretrained_tag(experiment.model, experiment.pretrained), seed=experiment.seed
        )
        if name == "pretrained":
            return student
        if not self.weights_file(name).exists():
            names = sorted(file.stem for file in (self.folder / "weights").glob("*.safetensors"))
            raise UserError(f"{self.folder} has no {name} weights; it has: {', '.join(names) or 'none yet'}")
        initialise_from(student, read_weights(self.weights_file(name)))
        return student

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock on the folder; raises if another process holds it."""
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"another process is working on {self.folder}") from None
            yield


def home(plan: Plan, folder: Path | None = None) -> Path:
    """The folder of a run of this plan."""
    return folder or Path("runs") / identity(plan)


def identity(plan: Plan) -> str:
    """The id of a run: a short hash of the experiment and the fingerprints of its data."""
    parts = [plan.experiment.id, plan.train.fingerprint, plan.held_out.fingerprint]
    if plan.anchors is not None:
        parts.append(plan.anchors.fingerprint)
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=5).hexdigest()


def start(experiment: Experiment) -> str | None:
    """A checksum of the pretrained weights if they are a file, because a file can be replaced under its name."""
    place = locate(experiment.model, pretrained_tag(experiment.model, experiment.pretrained))
    return file_blake2b(place.file) if place.file else None


def describe(plan: Plan) -> dict[str, Any]:
    """The contents of `experiment.json`: settings, data, classes, versions of the software."""
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
