"""Commands that are stopped, or that would be, before they have begun: what they leave behind and what they say."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracer.api.load import call
from tracer.api.merge import check_name
from tracer.cli.app import main
from tracer.cli.commands import list as listing
from tracer.core.command_line import command_line
from tracer.core.errors import UserError
from tracer.data.checking.report import command
from tracer.parallel import launched
from tracer.runs.experiment import Experiment
from tracer.storage.atomic import write_folder
from tracer.sweep import Sweep, supervisor


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_removes_what_is_half_written(number, tmp_path: Path, monkeypatch, capsys) -> None:
    """As Ctrl-C does; without a handler the process would end at once and leave a temporary folder."""

    def fill(temporary: Path) -> None:
        (temporary / "half").write_text("written")
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr(listing, "main", lambda arguments: write_folder(tmp_path / "export", fill))
    previous = signal.signal(number, signal.SIG_DFL)  # under nohup, SIGHUP is ignored
    try:
        assert main(["list"]) == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, previous)
    assert "the same command starts again" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_a_library_takes_for_an_error_is_still_one(number, monkeypatch, capsys) -> None:
    """Compiled code that is interrupted may raise what it likes: safetensors said that weights are not readable."""

    def swallow(error: Exception) -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        except KeyboardInterrupt:
            raise error from None

    previous = signal.signal(
        number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler
    )
    try:
        for error in (UserError("not readable"), TypeError("no shape"), OSError(5, "not read")):
            monkeypatch.setattr(listing, "main", lambda arguments, error=error: swallow(error))
            assert main(["list"]) == 128 + number
    finally:
        signal.signal(number, previous)
    assert "not read" not in capsys.readouterr().err
    monkeypatch.setattr(listing, "main", lambda arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["list"])


def test_a_signal_that_is_ignored_stays_so(monkeypatch) -> None:
    """As under nohup."""
    monkeypatch.setattr(listing, "main", lambda arguments: os.kill(os.getpid(), signal.SIGHUP) or 0)
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["list"]) == 0
    finally:
        signal.signal(signal.SIGHUP, previous)


def test_a_stopped_sweep_leaves_no_worker(tmp_path: Path, monkeypatch) -> None:
    started = []
    monkeypatch.setattr(supervisor, "_share", lambda run: 0.0)
    popen = supervisor.subprocess.Popen
    monkeypatch.setattr(
        supervisor.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1]
    )
    monkeypatch.setattr(Sweep, "by_folder", lambda self, folder: {folder / "a": None, folder / "b": None})
    progress = supervisor.supervise(Sweep((Experiment(data="digits"),)), tmp_path, ["sleep", "60"], 2)
    next(progress)
    with pytest.raises(KeyboardInterrupt):
        progress.throw(KeyboardInterrupt())
    assert [worker.returncode for worker in started] == [-signal.SIGTERM] * 2


@pytest.mark.parametrize("text", ["two", "", "-1", "0"])
def test_a_number_of_processes_that_is_none_is_a_sentence(text, monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", text)
    with pytest.raises(UserError, match=r"WORLD_SIZE is .*unset it, or start with torchrun"), launched("cpu"):
        pass


def test_processes_without_a_launcher_are_a_sentence(monkeypatch) -> None:
    """As where a scheduler sets the variables for a program that starts others itself."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="unset WORLD_SIZE for one process"), launched("cpu"):
        pass


def test_a_port_in_use_is_said_before_models_are_loaded(capsys) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert main(["try", "runs/none", "--port", str(other.getsockname()[1])]) == 2
    assert "is in use by another program" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["result", "student", "../other", "a/b", "", ".", "x" * 101, "a\nb", "\x1b[31m"]
)
def test_names_of_merges_that_would_replace_or_lead_elsewhere_are_refused(name) -> None:
    with pytest.raises(UserError, match="--name"):
        check_name(name)
    check_name("wise-0.5")


def test_a_folder_that_begins_with_a_dash_is_no_flag_in_advice() -> None:
    assert command_line("resume", Path("-run")) == "tracer resume ./-run"
    assert command({"data": "-photos"}) == "tracer train --data ./-photos"


def test_a_report_replaces_pages_only(tmp_path: Path, capsys) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1}')
    assert main(["report", str(tmp_path), "--out", str(log)]) == 2
    assert "is not a page" in capsys.readouterr().err
    assert log.read_text() == '{"step": 1}'


def test_the_line_that_loads_an_export_is_python_whatever_its_folder_is_called() -> None:
    folder, loaded = 'a "quoted" \\ name', []
    model = SimpleNamespace(predict=lambda image, **classes: classes)
    names = {"tracer": SimpleNamespace(load=lambda name: loaded.append(name) or model)}
    assert eval(call(Path(folder), ("a", "b")), names) == {}
    assert eval(call(Path(folder), ()), names) == {"classes": ["a cat", "a dog"]}
    assert loaded == [folder, folder]
