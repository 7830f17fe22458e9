"""Whole runs with `--log`: each tool's own reader finds the curves, and no sink, however bad, costs a run."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from studies.faults.process import run_command
from tracer.api.run import Machine, Observer, run
from tracer.cli import app
from tracer.core.errors import UserError
from tracer.evaluation.target import target
from tracer.report.run_data import find_runs, read_run
from tracer.runs import sinks
from tracer.runs.experiment import Experiment
from tracer.runs.record import read
from tracer.runs.run import Run
from tracer.runs.sinks import SINKS
from tracer.runs.sinks.forwarding import ForwardingRecorder, SinkThread
from tracer.runs.sinks.tools import Line, Sink, scalars

STEPS = 4
Curves = dict[str, list[tuple[int, float]]]


def settings(data: Path, model: str) -> dict[str, Any]:
    quick = {"templates": "name", "steps": STEPS, "batch": 8, "precision": "fp32"}
    return {"data": str(data), "model": model, "pretrained": "none", **quick}


def tensorboard(run: Path) -> Curves:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(run / "sinks" / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    return {tag: [(each.step, each.value) for each in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def wandb(run: Path) -> Curves:
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    (file,) = (run / "sinks" / "wandb").glob("offline-run-*/run-*.wandb")
    store, curves = DataStore(), defaultdict(list)
    store.open_for_scan(str(file))
    while data := store.scan_data():
        record = Record()
        record.ParseFromString(data)
        items = {each.key or "/".join(each.nested_key): each.value_json for each in record.history.item}
        for name, value in items.items():
            if name[:1] != "_":
                curves[name].append((record.history.step.num, json.loads(value)))
    return curves


def mlflow(run: Path) -> Curves:
    from mlflow import MlflowClient

    client = MlflowClient((run / "sinks" / "mlflow").as_uri())
    (logged,) = client.search_runs([client.get_experiment_by_name("tracer").experiment_id])
    assert logged.info.status == "FINISHED"
    assert logged.data.params["steps"] == str(STEPS)
    histories = {name: client.get_metric_history(logged.info.run_id, name) for name in logged.data.metrics}
    return {name: [(each.step, each.value) for each in history] for name, history in histories.items()}


READERS: dict[str, Callable[[Path], Curves]] = {"tensorboard": tensorboard, "wandb": wandb, "mlflow": mlflow}


def test_every_sink_has_a_reader() -> None:
    assert READERS.keys() == SINKS.keys()


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, some_digits: Path, minute: str) -> Path:
    """A run with every sink, as a user has it who has configured nothing, but that wandb is offline."""
    folder = tmp_path_factory.mktemp("logged")

    def at_home() -> None:
        os.chdir(folder)
        for name in [name for name in os.environ if name.startswith(("MLFLOW_", "WANDB_"))]:
            del os.environ[name]
        os.environ |= {"WANDB_MODE": "offline", "HOME": str(folder / "home")}

    flags = [
        word for name, value in settings(some_digits, minute).items() for word in (f"--{name}", str(value))
    ]
    command = ["train", "flyp", *flags, "--device", "cpu", "--out", "run", "--log", *SINKS]
    ended = run_command(command, inject=at_home)
    assert ended.code == 0, ended.output
    assert "the run goes on without it" not in ended.output
    assert {each.name for each in folder.iterdir()} <= {"run", "home"}
    return folder / "run"


@pytest.mark.filterwarnings("ignore")  # of the tools' own packages
@pytest.mark.parametrize("tool", SINKS)
def test_the_tools_own_reader_finds_the_curves_of_a_run(
    logged: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # as docs/report.md says
    curves = READERS[tool](logged)
    for line in read(logged / "log.jsonl"):
        for name, value in scalars(line).items():
            assert (line["step"], pytest.approx(value)) in curves[name], name
    accuracy = Run.open(logged).result["after"]["accuracy"]
    assert curves["result/after/accuracy"] == [(STEPS, pytest.approx(accuracy))]


def test_a_run_that_was_logged_elsewhere_is_a_run(logged: Path) -> None:
    """As every command sees it that reads one, and that writes into one; wandb leaves links."""
    assert any(path.is_symlink() for path in (logged / "sinks" / "wandb").iterdir())
    as_commands_see_it(logged)


def as_commands_see_it(folder: Path) -> None:
    with Run.open(folder).locked():
        pass
    target(Run.open(folder), "result", "result")
    assert read_run(folder).result
    assert find_runs([folder.parent]) == [folder]


class Bad(Sink):
    """Does nothing; the others do one thing that no sink should."""

    tool = "good"
    lines = 0

    def start(self, last_step: int) -> None:
        del last_step

    def write(self, line: Line) -> None:
        del line
        self.lines += 1

    def end(self) -> None:
        pass


class FailsAtOnce(Bad):
    tool = "fails-at-once"

    def start(self, last_step: int) -> None:
        raise ConnectionError("no\nanswer")


class FailsInALine(Bad):
    tool = "fails-in-a-line"

    def write(self, line: Line) -> None:
        raise ValueError


class FailsAtTheEnd(Bad):
    tool = "fails-at-the-end"

    def end(self) -> None:
        raise sys.exit(3)


class HangsAtTheEnd(Bad):
    tool = "hangs-at-the-end"
    forever = threading.Event()

    def end(self) -> None:
        self.forever.wait()


class WritesOddFiles(Bad):
    tool = "writes-odd-files"

    def start(self, last_step: int) -> None:
        (self.folder / "latest").symlink_to(self.folder)
        (self.folder / "elsewhere").symlink_to("/dev/zero")
        os.mkfifo(self.folder / "pipe")
        (self.folder / "experiment.json").write_text("{}")
        Path(os.fsdecode(os.fsencode(self.folder) + b"/\xff")).touch()
        (self.folder / "deep").mkdir(mode=0)


BAD = (Bad, FailsAtOnce, FailsInALine, FailsAtTheEnd, HangsAtTheEnd, WritesOddFiles)


def test_bad_sinks_are_a_warning_each_and_cost_nothing(
    tmp_path: Path, some_digits: Path, minute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SINKS", "check_installed"):
        monkeypatch.setattr(sinks, name, {sink.tool: sink for sink in BAD})
    monkeypatch.setattr("tracer.api.run.check_installed", lambda names: None)
    monkeypatch.setattr(sinks, "ForwardingRecorder", partial(ForwardingRecorder, timeout=0.5))
    experiment = Experiment(method="flyp", options={}, **settings(some_digits, minute))
    warnings: list[str] = []
    machine = Machine(device="cpu", workers=0, log=tuple(sink.tool for sink in BAD))
    finished = run(experiment, tmp_path / "run", machine, Observer(warn=warnings.append))
    HangsAtTheEnd.forever.set()
    gone = "failed, the run goes on without it:"
    assert sorted(each for each in warnings if each.partition(" ")[0] in machine.log) == [
        f"fails-at-once {gone} ConnectionError: no answer",
        f"fails-at-the-end {gone} SystemExit: 3",
        f"fails-in-a-line {gone} ValueError",
        "hangs-at-the-end did not finish within 0.5 s and may be incomplete; the log is complete",
    ]
    assert finished.finished
    as_commands_see_it(finished.folder)
    (finished.folder / "sinks" / "writes-odd-files" / "deep").chmod(0o700)


def test_links_that_a_stranger_has_put_into_a_run_are_not_followed(tmp_path: Path) -> None:
    """A store or an id behind a link would be written or overwritten there."""
    precious, run = tmp_path / "precious", tmp_path / "run"
    precious.mkdir()
    (precious / "events.out.tfevents.1").write_text("precious")
    (run / "sinks").mkdir(parents=True)
    for sink in SINKS.values():
        (run / "sinks" / sink.tool).symlink_to(precious)
    Bad(run, {"experiment": {}}).begin(-1)
    for sink in SINKS.values():
        quiet = type("Quiet", (sink,), {"start": lambda self, last_step: None})(run, {})
        quiet.begin(-1)
        assert not quiet.folder.is_symlink()
        (quiet.folder / "id.txt").symlink_to(precious / "id.txt")
        quiet.begin(-1)
        quiet.stored_id(-1, lambda: "own")
    assert [each.read_text() for each in precious.iterdir()] == ["precious"]
    (run / "sinks").rename(run / "moved")
    (run / "sinks").symlink_to(precious)
    with pytest.raises(UserError, match="sinks is a link"):
        Run(run).require_own_files()


def test_a_sink_that_was_given_up_does_not_hold_up_the_end_of_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release, codes = threading.Event(), []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(sys, "argv", ["tracer", "--version"])
    assert app.main() == 0
    assert codes == []
    thread = SinkThread("stuck", Bad(Path("run"), {}), print)
    thread.calls.put(lambda sink: release.wait() and None)
    app.main()
    release.set()
    thread.calls.put(None)
    thread.join()
    assert codes == [0]
    assert "tracer" in capsys.readouterr().out
