"""Sinks receive what the log holds, each line once, and can neither stop nor delay a run."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.cli import app as cli
from tracer.core.errors import UserError
from tracer.runs.record import read
from tracer.runs.sinks import check_installed
from tracer.runs.sinks.forwarding import ForwardingRecorder
from tracer.runs.sinks.tools import Line, MLflow, TensorBoard, WeightsAndBiases, metric_name, scalars

DESCRIPTION = {"id": "1a2b", "experiment": {"data": "digits", "options": {"beta": 0.5}}}


class Listener:
    """Keeps the lines it receives; fails from step `broken` on, or blocks in the first line."""

    def __init__(self, broken: int | None = None, stuck: threading.Event | None = None) -> None:
        self.lines: list[Line] = []
        self.began: list[int] = []
        self.ended, self.broken, self.stuck = 0, broken, stuck

    def begin(self, last_step: int) -> None:
        self.began.append(last_step)

    def write(self, line: Line) -> None:
        if self.stuck:
            self.stuck.wait()
        if self.broken is not None and line["step"] >= self.broken:
            raise ConnectionError("the line is dead")
        self.lines.append(line)

    def end(self) -> None:
        self.ended += 1


def record(
    path: Path, sinks: dict[str, Any], steps: range, *, back_to: int = -1, timeout: float = 30.0
) -> list[str]:
    """Record some steps, as one process of a run does. Returns the warnings."""
    messages: list[str] = []
    recorder = ForwardingRecorder(path, sinks, messages.append, timeout)
    recorder.rewind(back_to)
    for step in steps:
        recorder.log(step, "train", loss=1 / (1 + step), lr=0.1)
    recorder.close(path.parent / "result.json")
    return messages


def test_a_sink_receives_every_line_in_order_and_then_the_end(tmp_path: Path) -> None:
    sink = Listener()
    assert record(tmp_path / "log.jsonl", {"x": sink}, range(5)) == []
    assert sink.lines == list(read(tmp_path / "log.jsonl"))
    assert (sink.began, sink.ended) == ([-1], 1)


def test_a_broken_sink_is_reported_once_and_the_log_is_whole(tmp_path: Path) -> None:
    bad, good = Listener(broken=2), Listener()
    messages = record(tmp_path / "log.jsonl", {"bad": bad, "good": good}, range(6))
    assert messages == ["bad failed, the run goes on without it: ConnectionError: the line is dead"]
    assert [line["step"] for line in bad.lines] == [0, 1]
    assert [line["step"] for line in good.lines] == [line["step"] for line in read(tmp_path / "log.jsonl")]


def test_a_stuck_sink_holds_up_neither_the_run_nor_its_end(tmp_path: Path) -> None:
    release, began = threading.Event(), time.monotonic()
    messages = record(tmp_path / "log.jsonl", {"slow": Listener(stuck=release)}, range(50), timeout=0.05)
    assert time.monotonic() - began < 5
    assert messages == ["slow did not finish within 0.05 s and may be incomplete; the log is complete"]
    assert len(list(read(tmp_path / "log.jsonl"))) == 50
    release.set()


def test_numbers_have_the_names_of_curves() -> None:
    line = {
        "step": 3,
        "kind": "result",
        "after": {"accuracy": 1, "retain": {"a": 0.5}},
        "note": "x",
        "ok": True,
    }
    assert scalars(line) == {"result/after/accuracy": 1.0, "result/after/retain/a": 0.5}


# TensorBoard


def events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (file,) = (folder / "sinks" / "tensorboard").glob("events.out.tfevents.*")
    found = reading.EventAccumulator(str(file), size_guidance={"scalars": 0}).Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_an_event_file_holds_the_log_and_the_result(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    result = {"before": {"accuracy": 0.25}, "after": {"accuracy": 0.75, "retain": {"digits": 0.5}}}
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert record(tmp_path / "log.jsonl", {"tb": TensorBoard(tmp_path, DESCRIPTION)}, range(4)) == []
    found = events(tmp_path)
    assert found["train/loss"] == [(step, pytest.approx(1 / (1 + step))) for step in range(4)]
    assert found["result/after/retain/digits"] == [(3, 0.5)]
    assert set(found) == {
        "train/loss",
        "train/lr",
        "result/before/accuracy",
        "result/after/accuracy",
        "result/after/retain/digits",
    }


def test_a_resumed_run_stands_in_the_event_file_once(tmp_path: Path) -> None:
    """Killed at step 7, gone on from 4: the same as never stopped, even if there was no sink at first."""
    pytest.importorskip("tensorboard")
    for first in ({}, {"tb": TensorBoard(tmp_path, DESCRIPTION)}):
        (tmp_path / "log.jsonl").unlink(missing_ok=True)
        record(tmp_path / "log.jsonl", first, range(8))
        record(tmp_path / "log.jsonl", {"tb": TensorBoard(tmp_path, DESCRIPTION)}, range(5, 10), back_to=4)
        assert [step for step, _ in events(tmp_path)["train/loss"]] == list(range(10))


# Weights & Biases, with a stand-in for its package


class Wandb(SimpleNamespace):
    """The part of the package that is used; a server remembers the steps of each id, unless it is offline."""

    def __init__(self, *, offline: bool) -> None:
        super().__init__(runs={}, calls=[], offline=offline, Settings=dict)

    def init(self, **options: Any) -> Any:
        self.calls.append(options)
        steps = self.runs.setdefault(options["id"], [])

        def log(values: dict[str, float], step: int) -> None:
            steps.append((step, values))

        next_step = 0 if self.offline or not steps else steps[-1][0] + 1
        return SimpleNamespace(step=next_step, log=log, finish=lambda: None)


@pytest.mark.parametrize("offline", [False, True])
def test_a_resumed_run_goes_on_under_its_id_and_logs_no_step_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    stand_in = Wandb(offline=offline)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    assert record(tmp_path / "log.jsonl", {"w": WeightsAndBiases(tmp_path, DESCRIPTION)}, range(8)) == []
    again = {"w": WeightsAndBiases(tmp_path, DESCRIPTION)}
    assert record(tmp_path / "log.jsonl", again, range(5, 10), back_to=4) == []
    (entries,) = stand_in.runs.values()
    assert [step for step, _ in entries] == list(range(10))
    assert entries[3][1] == {"train/loss": 0.25, "train/lr": 0.1}
    assert {options["resume"] for options in stand_in.calls} == {"allow"}
    assert stand_in.calls[0]["config"] == DESCRIPTION["experiment"]


def test_a_run_that_had_no_sink_is_logged_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = Wandb(offline=False)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    record(tmp_path / "log.jsonl", {}, range(5))
    record(tmp_path / "log.jsonl", {"w": WeightsAndBiases(tmp_path, DESCRIPTION)}, range(4, 7), back_to=3)
    (entries,) = stand_in.runs.values()
    assert [step for step, _ in entries] == list(range(7))


def test_the_same_experiment_in_two_folders_is_two_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = Wandb(offline=False)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        record(tmp_path / name / "log.jsonl", {"w": WeightsAndBiases(tmp_path / name, DESCRIPTION)}, range(2))
    assert len(stand_in.runs) == 2


# The command


def test_a_missing_package_is_an_error_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tracer.runs.sinks.find_spec", lambda name: None)
    out = tmp_path / "run"
    assert cli.main(["train", "--data", "digits", "--log", "wandb", "--out", str(out)]) == 2
    assert "pip install wandb" in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(UserError, match="did you mean tensorboard"):
        check_installed(["tensorbord"])


def test_mlflow_holds_the_log_once_after_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real package, which writes to a folder."""
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'tracer-clip[sinks]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # asked for by 3.17 of every reader
    assert record(tmp_path / "log.jsonl", {"m": MLflow(tmp_path, DESCRIPTION)}, range(4)) == []
    assert record(tmp_path / "log.jsonl", {"m": MLflow(tmp_path, DESCRIPTION)}, range(3, 6), back_to=2) == []
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("tracer").experiment_id])
    entries = client.get_metric_history(run.info.run_id, "train/loss")
    assert [(entry.step, entry.value) for entry in entries] == [
        (step, pytest.approx(1 / (1 + step))) for step in range(6)
    ]
    assert run.data.params == {"data": "digits", "beta": "0.5"}
    assert run.info.status == "FINISHED"


@pytest.mark.parametrize("data", ["digits", "/data/x", "../x", "a//b/", "ü", "a=b?c", ".", "x y/z.tar"])
def test_every_set_has_a_name_that_mlflow_takes(data: str) -> None:
    validation = pytest.importorskip("mlflow.utils.validation")
    validation._validate_metric_name(metric_name(f"result/before/retain/{data}"))
