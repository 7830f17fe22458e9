"""The contents of a run's folder, read tolerantly: what is missing or damaged becomes a note."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.core.validation import fits
from tracer.measure.answers import Answers, Estimate, Key
from tracer.methods.base import method, methods, options
from tracer.report.scored import WEIGHTS, Moment, answers_of
from tracer.runs.files import CONTENT, DESCRIPTION, FETCHED, FOREIGN, RESULT, read_json
from tracer.runs.record import entries_of
from tracer.storage.folders import no_such_folder, require_files


@dataclass(frozen=True, eq=False)
class RunData:
    """Everything that a run's folder holds; the run may be finished, in progress or interrupted."""

    folder: Path
    name: str
    description: dict[str, Any]
    log: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None
    analysis: dict[str, Any]  # empty where there is none
    answers: dict[Moment, tuple[Answers, ...]]  # on the held-out set and the test sets of `tracer eval`
    unreadable: tuple[str, ...]  # a note on each file that cannot be read
    names: Mapping[tuple[str, Key], str] = field(default_factory=dict)  # of test sets: see `told_apart`

    @property
    def notes(self) -> tuple[str, ...]:
        """That it is not finished, what could not be read, and the warnings of the result."""
        if self.result is None:
            return f"not finished: step {self.step} of {self.steps or '?'}", *self.unreadable
        return *self.unreadable, *self.result.get("warnings", ())

    @cached_property
    def scored(self) -> dict[Moment, tuple[Estimate, ...]]:
        """Every metric on every test set, under the name by which the set is shown."""
        return {
            moment: tuple(
                each._replace(data=self.shown(own))
                for own in answers
                if own.role != "task"
                for each in own.estimates
            )
            for moment, answers in self.answers.items()
        }

    def shown(self, answers: Answers) -> str:
        """The name of the data set in tables."""
        return self.names.get((answers.name, answers.key), answers.name)

    @property
    def finished(self) -> bool:
        return self.result is not None

    @property
    def experiment(self) -> dict[str, Any]:
        return self.description["experiment"]

    @property
    def seed(self) -> Any:
        return self.experiment.get("seed")

    @property
    def steps(self) -> int | None:
        return self.description.get("steps")

    @property
    def step(self) -> int:
        """The last step in the log."""
        return max((line["step"] for line in self.log), default=0)

    @property
    def data(self) -> dict[str, Any]:
        return self.description.get("data", {})

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.description.get("classes", ()))

    @cached_property
    def title(self) -> str:
        """The method's title; its name where this version does not know the method."""
        name = self.experiment.get("method", "unknown method")
        if name not in methods():
            return name
        try:
            return method(name, **self.options).title or name
        except UserError:  # a run of another version with unknown options
            return name

    @property
    def options(self) -> dict[str, Any]:
        return self.experiment.get("options", {})

    @property
    def default_options(self) -> dict[str, Any]:
        """The defaults of the method's options; none where this version does not know the method."""
        name = self.experiment.get("method")
        return {option.name: option.default for option in options(name)} if name in methods() else {}

    @cached_property
    def settled(self) -> dict[str, Any]:
        """Settings and options as one mapping, with the method's defaults where the run has none."""
        rest = {key: value for key, value in self.experiment.items() if key != "options"}
        return {**rest, **self.default_options, **self.options, **self._content}

    @property
    def _content(self) -> dict[str, str]:
        """Hashes of templates, model and further data: files that may have changed under the names in the settings."""
        stored = self.description.get(CONTENT, {}) | self.description.get(FETCHED, {})
        others = ("settings", "training ", "held-out ")  # which are compared for themselves
        digests = {name: digest for name, digest in stored.items() if digest and not name.startswith(others)}
        return {f"{name} digest": digest for name, digest in digests.items()}

    @property
    def seconds(self) -> float | None:
        """Seconds from the first file to the result, pauses included; None while it is not finished."""
        try:
            start = datetime.fromisoformat(self.description["created"]).timestamp()
            return max(0.0, (self.folder / RESULT).stat().st_mtime - start)
        except (KeyError, ValueError, OSError):
            return None

    def analysed(self, *names: str) -> list[dict[str, Any]]:
        """The rows of the table under these names in the analysis; none where there is no such table."""
        rows = inner(self.analysis, *names)
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    def logged(self, kind: str) -> list[str]:
        """Names of the values in the log's lines of this kind, in order of appearance."""
        lines = (line for line in self.log if line.get("kind") == kind)
        names = dict.fromkeys(name for line in lines for name in line)
        return [name for name in names if name not in ("step", "kind")]

    def curve(self, kind: str, name: str) -> dict[float, float]:
        """The finite values of one name by step."""
        lines = [line for line in self.log if line.get("kind") == kind]
        return {float(line["step"]): value for line in lines if (value := number(line.get(name))) is not None}


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The runs in these folders: a folder is a run itself, or holds runs (a sweep, a demo)."""
    runs: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise no_such_folder("run", path, (DESCRIPTION,))
        folders = [path]
        if not (path / DESCRIPTION).is_file():
            files = (file for file in path.glob(f"**/{DESCRIPTION}") if ".tmp" not in str(file))
            folders = sorted(file.parent for file in files if not _in_sinks(file))
        if not folders:
            raise UserError(f"{path} is not a run and holds none: there is no {DESCRIPTION} in it")
        runs.update({run.resolve(): run for run in folders})
    return list(runs.values())


def _in_sinks(file: Path) -> bool:
    """Whether another package has written a file into a run."""
    return any(above.name == FOREIGN and (above.parent / DESCRIPTION).is_file() for above in file.parents)


def read_runs(folders: Sequence[Path]) -> tuple[list[RunData], list[str]]:
    """Every run that can be read, and an error message for each that cannot."""
    runs, unreadable = [], []
    for folder, name in zip(folders, _short_names(folders), strict=True):
        try:
            runs.append(read_run(folder, name))
        except ValueError as error:
            unreadable.append(f"{name}: {error}")
    return told_apart(runs), unreadable


def read_run(folder: Path, name: str | None = None) -> RunData:
    """Everything in a run's folder; ValueError where its description cannot be read."""
    require_files(folder, apart=FOREIGN)
    notes: list[str] = []
    description = read_object(folder / DESCRIPTION, notes)
    if description is None or not isinstance(description.get("experiment"), dict):
        raise ValueError(notes[0] if notes else f"{DESCRIPTION} does not describe an experiment")
    run = RunData(
        folder=folder,
        name=name or folder.name,
        description=description,
        log=_log(folder / "log.jsonl", notes),
        result=read_object(folder / RESULT, notes),
        analysis=read_object(folder / "analysis.json", notes) or {},
        answers={moment: answers_of(folder, moment, notes) for moment in WEIGHTS},
        unreadable=tuple(notes),
    )
    return told_apart([run])[0]


def told_apart(runs: Sequence[RunData]) -> list[RunData]:
    """The runs with a name of its own for each question: scores on a test set that was changed since are no column."""
    names: dict[tuple[str, Key], str] = {}
    first: dict[str, Key] = {}
    for answers in (run.answers[moment] for moment in ("after", "before") for run in runs):
        for each in answers:
            if each.role == "task" or (each.name, each.key) in names:
                continue
            other = first.setdefault(each.name, each.key).differs(each.key)
            shown = f"{each.name} (other {other})" if other else each.name
            names[each.name, each.key] = (
                f"{shown} {each.key.digest[:4]}" if shown in names.values() else shown
            )
    return [replace(run, names=names) for run in runs]


def read_object(path: Path, notes: list[str]) -> dict[str, Any] | None:
    """The file's JSON object, or None; a file that exists and cannot be read adds a note."""
    try:
        return read_json(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        notes.append(f"{path.name} is not readable: {error}")
        return None


def _log(path: Path, notes: list[str]) -> tuple[dict[str, Any], ...]:
    if not path.is_file():
        notes.append("no log yet")
        return ()
    entries = list(entries_of(path))
    readable = tuple(entry for entry in entries if entry is not None)
    if broken := len(entries) - len(readable):
        notes.append(f"{broken} of {len(entries)} lines of {path.name} are cut short or unreadable")
    return readable


def _short_names(folders: Sequence[Path]) -> list[str]:
    """The last part of each path, and as many parts before it as make the names distinct."""
    parts = [folder.resolve().parts for folder in folders]
    names = []
    for own in parts:
        length = 1
        while length < len(own) and sum(other[-length:] == own[-length:] for other in parts) > 1:
            length += 1
        names.append("/".join(own[-length:]))
    return names


def number(value: Any) -> float | None:
    """A value of a file as a float if it is a finite number, else None."""
    return float(value) if fits(value, float) and math.isfinite(value) else None


def numeric(rows: Iterable[Sequence[Any]]) -> list[list[float]]:
    """The rows in which every value is a finite number."""
    return [[*map(float, row)] for row in rows if None not in map(number, row)]


def inner(value: Any, *names: str) -> Any:
    """The value under these names in nested objects of a file; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
