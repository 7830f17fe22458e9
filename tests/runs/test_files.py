"""Descriptions and results whose values no run writes are refused as a whole, and end no command in a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tracer.core.errors import UserError
from tracer.core.metrics.intervals import Interval
from tracer.evaluation.target import target
from tracer.evaluation.verdict import Change, names_kept, verdict
from tracer.report.model_card import model_card
from tracer.report.run_data import read_run, read_runs
from tracer.runs.files import DESCRIPTION, RESULT, read_json
from tracer.runs.run import Run

SURE = list(Interval(0.4, 0.5, 0.6))
CHANGE = Change.of([True, False], [True, True]).to_json()
FILES: dict[str, dict[str, Any]] = {
    DESCRIPTION: {
        "id": "a",
        "content": {"settings": "a", "weights": None},
        "experiment": {"data": "digits", "retain": ["emoji"], "method": "tracer", "options": {}, "batch": 8},
        "start": None,
        "fetched": {"model.safetensors": "a"},
        "steps": 4,
        "data": {"name": "digits", "train": 90, "held_out": 10},
        "classes": ["zero", "one"],
        "versions": {"torch": "2"},
        "git": "0123456789abcdef",
        "created": "2026-11-15T10:00:00+00:00",
        "machine": {"device": "cpu", "threads": 2},
    },
    RESULT: {
        "before": {"accuracy": 0.5, "temperature": 1.0, "retain": {"emoji": 0.5}},
        "after": {"accuracy": 1.0, "temperature": 1.0, "retain": {"emoji": 0.5}},
        "changes": {"task": CHANGE, "retain": {"emoji": CHANGE}},
        "retention": {"agreement": 0.5, "kl": 0.1, "n": 20, "meaningful": True, "interval": SURE},
        "warnings": ["emoji fell"],
    },
}
# NaN is a number that a run may write, and a text is let through where other versions have other choices.
WRONG = (None, 10**400, True, [], {}, [[]], {"a": [1]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, value in FILES.items():
        (tmp_path / name).write_text(json.dumps(value))
    (tmp_path / "log.jsonl").write_text('{"step": 1, "kind": "train", "loss": 1.0}\n')
    return tmp_path


def places(value: Any, start: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested objects and lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*start, key)
        yield from places(each, (*start, key))


def changed(value: Any, place: tuple[Any, ...], new: object) -> Any:
    """A copy with another value in this place; Ellipsis leaves the place out."""
    copy = part = json.loads(json.dumps(value))
    for key in place[:-1]:
        part = part[key]
    if new is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = new
    return copy


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, value in FILES.items() for place in places(value)]
)
def test_values_that_no_run_writes_are_a_sentence(folder: Path, name: str, place: tuple[Any, ...]) -> None:
    """Whoever reads them: the run itself, eval, the verdict, the report, the model card."""
    for new in (..., "x", *WRONG):
        (folder / name).write_text(json.dumps(changed(FILES[name], place, new)))
        with suppress(UserError):
            run = Run.open(folder)
            target(run, "result", "after")
            verdict(run.result)
            names_kept(run.result)
            model_card(run.folder, "result", "open_clip", "title")
        _, unreadable = read_runs([folder])
        assert all("experiment.json" in each for each in unreadable)


def test_what_is_whole_stays_readable(folder: Path) -> None:
    for name, value in FILES.items():
        assert read_json(folder / name) == value
    run = read_run(folder)
    assert run.notes == ("emoji fell",)
    assert verdict(run.result or {}) is not None


@pytest.mark.parametrize("name", FILES)
def test_numbers_that_no_float_holds_are_refused(folder: Path, name: str) -> None:
    key = "steps" if name == DESCRIPTION else "retention"
    (folder / name).write_text(json.dumps(FILES[name] | {key: 10**400}))
    with pytest.raises(ValueError, match=f"{key} cannot be 1000"):
        read_json(folder / name)


def test_a_step_that_no_float_holds_is_a_damaged_line(folder: Path) -> None:
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps({"step": 10**400, "kind": "train", "loss": 10**400}) + "\n")
    run = read_run(folder)
    assert run.curve("train", "loss") == {1.0: 1.0}
    assert any("1 of 2 lines of log.jsonl" in note for note in run.notes)
