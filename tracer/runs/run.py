"""The folder of a run. It is all that is needed to resume, evaluate, export and report the run."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Any

from tracer.core.command_line import command_line
from tracer.core.errors import UserError
from tracer.data.classes import Spec
from tracer.data.place import remember_named, require_named
from tracer.measure.answers import Store
from tracer.models.source import HUB
from tracer.models.student import Student, Weights, initialise_from, read_weights
from tracer.models.task import Task
from tracer.runs.experiment import Experiment
from tracer.runs.files import (
    CHOSEN,
    CLASS_NAMES,
    CONTENT,
    DESCRIPTION,
    FETCHED,
    FOREIGN,
    RESULT,
    read_json,
)
from tracer.runs.identity import (
    MODEL_CONFIG,
    content,
    describe,
    fetched,
    model_config,
    start,
)
from tracer.runs.plan import Plan
from tracer.runs.record import Recorder
from tracer.storage.atomic import write_file, write_json
from tracer.storage.checksum import add_checksum, short_hash
from tracer.storage.folders import folders_inside, no_such_folder, paths_inside, require_files, require_utf8
from tracer.storage.lock import lock
from tracer.storage.safetensors_io import tensors_blake2b, weights_blake2b, write_weights


class Run:
    """`experiment.json`, `log.jsonl`, `weights/`, `resume/`, and `result.json` once the run is finished.

    `weights` names the weights that are used by default: those of the result, of a merge, or those that `fit` chose.
    """

    def __init__(self, folder: Path, weights: str = "result") -> None:
        self.folder, self.weights = folder, weights
        self.recorder = Recorder(folder / "log.jsonl")
        self.resume = folder / "resume"

    @classmethod
    def create(cls, plan: Plan, folder: Path, *, machine: dict[str, Any] | None = None) -> Run:
        """Create the folder of a new run, begun on `machine`. Raises if the folder holds a run or other files."""
        require_utf8(folder)
        if (folder / DESCRIPTION).exists():
            run = cls.open(folder)
            run.require(plan)
            hint = "it is finished" if run.finished else f"go on with: {command_line('resume', folder)}"
            raise UserError(f"this experiment is already in {folder}: {hint}")
        # Hidden files may be left by a process that was killed while it created the run.
        if any(not file.name.startswith(".") for file in folder.glob("*")):
            raise UserError(f"{folder} is not empty and holds no run: choose another --out")
        try:
            write_json(folder / DESCRIPTION, add_checksum({**describe(plan), "machine": machine or {}}))
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}") from None
        remember_named((*plan.experiment.sources, plan.experiment.model))
        return cls(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether the folder holds a run, finished or not."""
        return (folder / DESCRIPTION).is_file()

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run in a folder; where `tracer fit` has chosen a mixture of it, it stands for that one."""
        if not folder.exists():
            raise no_such_folder("run", folder, (DESCRIPTION,))
        if not cls.exists(folder):
            raise UserError(
                f"{folder} is not a run: it has no {DESCRIPTION}{folders_inside(folder, (DESCRIPTION,))}"
            )
        require_files(folder, apart=FOREIGN)
        run = cls(folder)
        run.description  # noqa: B018  (raise now if the description is unreadable)
        chosen = run._read(CHOSEN).get("weights") if (folder / CHOSEN).is_file() else None
        if chosen is not None and run.weights_file(chosen).is_file():
            run.weights = chosen
        return run

    @property
    def description(self) -> dict[str, Any]:
        """What `experiment.json` holds: the id, the experiment and the classes; a UserError if it is damaged."""
        description = self._read(DESCRIPTION)
        if missing := [name for name in ("id", "experiment", "classes") if name not in description]:
            raise UserError(f"{self.folder / DESCRIPTION} does not describe a run: it has no {missing[0]}")
        return description

    @property
    def experiment(self) -> Experiment:
        """The settings of the run."""
        return Experiment.from_json(self.description["experiment"])

    @property
    def class_names(self) -> Spec | None:
        """What --classes stood for when the run began; None if it was not given."""
        return self.description.get(CLASS_NAMES)

    def require_named_sources(self) -> None:
        """Raise if data or model of the run are on another machine, and the user of this one has never named them."""
        require_named(self.experiment.sources, str(self.folder))
        self._require_named_model()

    def _require_named_model(self) -> None:
        if self.experiment.model.startswith(HUB):
            require_named((self.experiment.model,), str(self.folder), command="eval")

    def require(self, plan: Plan) -> None:
        """Raise unless this run is one of `plan`: the same experiment, data and pretrained weights."""
        self.require_start()
        if changed := self.changes(plan):
            raise UserError(
                f"{self.folder} holds another experiment ({self.description['id']}), with other {changed}: "
                "choose another --out"
            )

    def changes(self, plan: Plan) -> str:
        """What is different in `plan`, such as "training images and templates"; empty if nothing is."""
        began = self._began
        changed = [name for name, digest in content(plan).items() if began.get(name) != digest]
        return " and ".join(filter(None, (", ".join(changed[:-1]), *changed[-1:])))

    def require_start(self) -> None:
        """Raise if the weights or the config of the model were replaced under its name since the run began."""
        experiment = self.experiment
        parts = {"weights": start(experiment), **fetched(experiment), MODEL_CONFIG: model_config(experiment)}
        self._require_unchanged(experiment.model, parts)

    @property
    def _began(self) -> dict[str, str | None]:
        """Hashes of what the run began with, by name; version 0.1 wrote that of the weights only."""
        description = self.description
        return {
            "weights": description.get("start"),
            **description.get(CONTENT, {}),
            **description.get(FETCHED, {}),
        }

    def _require_unchanged(self, source: str, parts: Mapping[str, str | None]) -> None:
        """Raise, naming it, if a part of `source` is another than the run began with, as far as that is known."""
        began = self._began
        for name, digest in parts.items():
            if began.get(name) not in (None, digest):
                remedy = "bring it back, give the new one another name, or choose another --out"
                raise UserError(f"{source} has changed since {self.folder} began, in its {name}: {remedy}")

    @property
    def finished(self) -> bool:
        """Whether the run has its result."""
        return (self.folder / RESULT).exists()

    def require_finished(self) -> None:
        """Raise UserError, with the command that goes on, if the run is not finished."""
        if not self.finished:
            raise UserError(
                f"{self.folder} is not finished: go on with: {command_line('resume', self.folder)}"
            )

    @property
    def result(self) -> dict[str, Any]:
        """The contents of `result.json`; empty if the run is not finished."""
        return self._read(RESULT) if self.finished else {}

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return read_json(self.folder / name)
        except (ValueError, OSError) as error:
            raise UserError(f"{self.folder / name} is not readable: {error}") from None

    def weights_file(self, name: str) -> Path:
        """Where the weights of this name lie, or would lie: student, teacher, result, or a merge."""
        return self.folder / "weights" / f"{name}.safetensors"

    def stored_weights(self, name: str) -> Weights:
        """The weights of this name; a UserError lists those that there are, or says how to finish the run."""
        if not self.weights_file(name).exists():
            self.require_finished()
            names = sorted(file.stem for file in (self.folder / "weights").glob("*.safetensors"))
            raise UserError(f"{self.folder} has no {name} weights; it has: {', '.join(names) or 'none'}")
        return read_weights(self.weights_file(name))

    def by(self, weights: str) -> str:
        """Who answers with these weights: a hash of them and of what else makes them a model. No weights are read."""
        description = self.description
        if weights == "pretrained":
            return short_hash(["pretrained", description["id"], self._began])
        model = [self._began.get(MODEL_CONFIG), description["classes"]]
        return short_hash([weights_blake2b(self.weights_file(weights)), *model])

    def answers(self, weights: str) -> Store:
        """What these weights have answered."""
        return Store(self.folder / "predictions" / weights)

    def keep(self, name: str, weights: Weights, like: str | None = None) -> bool:
        """Write named weights, atomically; if they are those of the file of `like`, as another name of that file.

        Returns whether other weights of this name are replaced; what was measured of those is removed.
        """
        self.require_own_files()
        file = self.weights_file(name)
        replaced = file.exists() and weights_blake2b(file) != tensors_blake2b(weights)

        def fill(file: Path) -> None:
            with suppress(OSError):  # a file system may have no such names
                if like is not None:
                    file.hardlink_to(self.weights_file(like))
            if not file.exists():
                write_weights(file, weights)

        if replaced:  # first: numbers without weights mislead nobody, those of other weights do
            shutil.rmtree(self.answers(name).folder, ignore_errors=True)
            (self.folder / "merges" / f"{name}.json").unlink(missing_ok=True)
        write_file(file, fill)
        return replaced

    def __repr__(self) -> str:
        state = "finished" if self.finished else "not finished"
        return f"Run({str(self.folder)!r}, {self.weights!r}): {self.experiment.method}, {state}"

    def _repr_html_(self) -> str:
        """For notebooks: accuracy before and after on the held-out set and on each retained set."""
        changes = self.result.get("changes") if self.weights == "result" else None
        if not changes:
            return f"<p>{escape(repr(self))}</p>"
        rows = "<tr><th></th><th>before</th><th>after</th><th>images</th></tr>"
        retained = {f"retained: {name}": change for name, change in changes["retain"].items()}
        for name, change in {"held-out": changes["task"], **retained}.items():
            before, after = (f"{100 * change[side][1]:.1f} %" for side in ("before", "after"))
            cells = (escape(name), before, after, change["n"])
            rows += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"

    def task(self, name: str | None = None) -> Task:
        """What the weights of this name answer: the classes and prompts of the run, and their temperature if known."""
        description, moment = self.description, {"result": "after", "pretrained": "before"}
        scores = self.result.get(moment.get(name or self.weights, ""))
        temperature = scores.get("temperature") if isinstance(scores, dict) else None
        known = isinstance(temperature, float) and 0 < temperature < math.inf
        return Task(
            classes=tuple(description["classes"]),
            templates=tuple(description.get("templates", ())),
            asked=self.experiment.templates is not None,
            temperature=temperature if known else None,
        )

    def student(self, name: str | None = None) -> Student:
        """The model with weights of this run: result, student, teacher, pretrained, or the name of a merge."""
        name = name or self.weights
        experiment = self.experiment
        self._require_named_model()
        if name == "pretrained":
            self.require_start()
            weights = None
        else:
            self._require_unchanged(experiment.model, {MODEL_CONFIG: model_config(experiment)})
            weights = self.stored_weights(name)  # first: loading a model is slow
        student = experiment.pretrained_model()
        student.white_level = experiment.white_level
        if weights is not None:
            initialise_from(student, weights)
        return student

    def require_own_files(self) -> None:
        """Raise if there is a link in the folder, so that what is written to it would go elsewhere."""
        for path in paths_inside(self.folder, apart=FOREIGN):
            if path.is_symlink():
                raise UserError(f"{path} is a link: a run is written inside its own folder only")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock on the folder; raises if another process holds it, or if what is written would go elsewhere."""
        self.require_own_files()
        with lock(self.folder / ".lock") as held:
            if not held:
                raise UserError(f"another process is working on {self.folder}")
            yield
