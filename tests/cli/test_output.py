"""Output that cannot be written changes nothing that is computed or saved, and exit codes speak of the work."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from rich.progress import Progress
from starting import environment
from training import stopping

from tracer.api import streams
from tracer.api.terminal import Display, console, errors, put, say, show_table
from tracer.cli.app import _names, main
from tracer.evaluation import measured
from tracer.training.loop import Report

ALL = "→ ± − … α × “ \N{SNOWMAN} \udcff naïve"
CRASH = 70


def gone() -> int:
    read, write = os.pipe()
    os.close(read)
    return write


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)


FILES: dict[str, Callable[[], int] | None] = {"gone": gone, "full": full, "closed": None}
ENCODINGS = ("ascii", "latin-1", "cp1252", "cp437", "utf-16", "utf-8")


def attach(number: int, file: Callable[[], int] | None, encoding: str = "utf-8") -> None:
    """Let a standard stream of this process lead to such a file; if it is closed, it is None, as in Python."""
    name = {0: "stdin", 1: "stdout", 2: "stderr"}[number]
    if file is None:
        os.close(number)
        setattr(sys, name, None)
        return
    descriptor = file()
    os.dup2(descriptor, number)
    raw = open(number, "wb", closefd=False)  # noqa: SIM115
    setattr(sys, name, io.TextIOWrapper(raw, encoding=encoding, line_buffering=number == 2))


def in_child(work: Callable[[], int]) -> int:
    """The exit code of this work in a forked process."""
    said, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = CRASH
        try:
            warnings.simplefilter("default")
            code = work()
        except BaseException:  # noqa: BLE001  (the child must end here, whatever was raised)
            os.write(write, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(code)
    os.close(write)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(said, "rb") as file:
        text = file.read().decode()
    assert not text, text
    return os.waitstatus_to_exitcode(status)


def speak(_: list[str]) -> int:
    """Print in every way that commands and libraries have; the code is that of the work."""
    for line in (ALL, "a" * 100_000):
        print(line)
        print(line, file=sys.stderr)
        say(line)
        say(line, to=errors)
        warnings.warn(line, stacklevel=1)
    sys.stdout.write("part of a line")
    sys.stdout.flush()
    show_table(ALL, (ALL, "of"), [(ALL, "1")])
    with errors.status(ALL), Progress(console=console) as bar:
        bar.add_task(ALL)
    with Display(ALL) as display:
        display.show(Report(1, 2, loss=1.0, accuracy=0.5, warning=ALL, message=ALL))
        display.show(Report(2, 2, loss=1.0, accuracy=0.5))
    return 7


@pytest.mark.parametrize("number", [1, 2, 0, 12, 120])
@pytest.mark.parametrize("kind", FILES)
def test_every_command_ends_as_its_work_does(kind: str, number: int, monkeypatch) -> None:
    for name in _names():
        monkeypatch.setattr(import_module(f"tracer.cli.commands.{name}"), "main", speak)

    def work() -> int:
        attach(1, nowhere), attach(2, nowhere)
        for each in str(number):
            attach(int(each), FILES[kind])
        return 7 if {main([name]) for name in _names()} == {7} else 1

    assert in_child(work) == 7


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_terminal_of_any_encoding_is_printed_to(encoding: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(import_module("tracer.cli.commands.list"), "main", speak)

    def work() -> int:
        for number in (1, 2):
            attach(
                number, lambda: os.open(tmp_path / "said", os.O_CREAT | os.O_WRONLY | os.O_APPEND), encoding
            )
        return main(["list"])

    assert in_child(work) == 7
    said = (tmp_path / "said").read_bytes().decode(encoding, errors="replace")
    assert "\\udcff" in said
    assert ("→ ±" if encoding.startswith("utf") else "->") in said
    assert "na" in said


def test_the_other_stream_says_once_that_a_disk_is_full(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(import_module("tracer.cli.commands.list"), "main", speak)

    def work() -> int:
        attach(1, full)
        attach(2, lambda: os.open(tmp_path / "said", os.O_CREAT | os.O_WRONLY))
        return main(["list"])

    assert in_child(work) == 7
    assert (tmp_path / "said").read_text().count("printing fails: No space left on device") == 1


def test_a_closed_stream_is_not_the_next_file_that_is_opened(tmp_path: Path, monkeypatch) -> None:
    """Whose number it would have: a library's warning would be written into a checkpoint."""

    def write(_: list[str]) -> int:
        with (tmp_path / "weights").open("wb") as file:
            for number in (1, 2):
                os.write(number, b"a warning of compiled code")
            file.write(b"weights")
        return 0

    monkeypatch.setattr(import_module("tracer.cli.commands.list"), "main", write)

    def work() -> int:
        for number in (0, 1, 2):
            attach(number, None)
        return main(["list"])

    assert in_child(work) == 0
    assert (tmp_path / "weights").read_bytes() == b"weights"


def test_training_waits_for_no_reader_and_says_what_it_left_out(monkeypatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.01)

    def work() -> int:
        read, write = os.pipe()
        os.set_blocking(read, False)
        attach(1, lambda: write)
        attach(2, nowhere)
        with streams.steady_streams(), Display("ft") as display:
            for step in range(3000):
                display.show(Report(step, 3000, accuracy=0.5, message="x" * 100))
            while True:
                try:
                    os.read(read, 4096)
                except BlockingIOError:
                    break
            say("it reads again")
        said = os.read(read, 4096).decode()
        return int(not ("messages are left out here" in said and said.endswith("it reads again\n")))

    assert in_child(work) == 0


def test_text_for_a_program_is_the_work(monkeypatch) -> None:
    """A table in a file that is cut off would be read as the whole."""

    def work() -> int:
        attach(1, full), attach(2, nowhere)
        return main(["list"])

    monkeypatch.setattr(import_module("tracer.cli.commands.list"), "main", lambda _: put("a,b\n1,2") or 0)
    assert in_child(work) == 2


def test_a_program_that_trains_outlives_its_terminal() -> None:
    """rich would end it, with exit code 1 and without a word, at the first line that nobody reads."""

    def work() -> int:
        attach(1, gone), attach(2, nowhere)
        with Display("ft") as display:
            display.show(Report(1, 2, accuracy=0.5, message=ALL))
        show_table(ALL, ("a",), [("b",)])
        return 7

    assert in_child(work) == 7


@pytest.mark.parametrize("streams", ["> /dev/full", ">&-", ">&- 2>&- <&-", "2> /dev/full", "| true"])
def test_the_interpreter_ends_with_that_code_too(streams: str) -> None:
    """It flushes its streams at the end, and exits with 120 if that fails."""
    command = f"sleep 0.2; {shlex.quote(sys.executable)} -m tracer --help {streams}"
    script = f"set -o pipefail; {command}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_run_is_the_same_whatever_becomes_of_its_output(tmp_path: Path, monkeypatch) -> None:
    names = measured.known_names()[:24]
    monkeypatch.setattr(measured, "known_names", lambda: names)
    stopping.prepare(tmp_path)
    trained = {}
    for name, file in (("heard", nowhere), ("gone", gone), ("closed", None)):

        def work(name=name, file=file) -> int:
            for number in (1, 2):
                attach(number, file, "ascii")
            return main(stopping.training(tmp_path, name, 0))

        assert in_child(work) == 0, name
        trained[name] = stopping.hashes(tmp_path / name)
    assert trained["heard"] == trained["gone"] == trained["closed"]

    run, photos = str(tmp_path / "heard"), str(tmp_path / "photos")
    commands = {
        "list": [],
        "check": [photos],
        "resume": [run],
        "eval": [run, "--data", photos],
        "merge": [run, "--wise", "0.5"],
        "export": [run, "--out", str(tmp_path / "export")],
        "report": [run, "--out", str(tmp_path / "page.html")],
        "pack": [photos, "--out", str(tmp_path / "packed.tar")],
    }

    def others() -> int:
        attach(1, full, "ascii"), attach(2, gone, "ascii")
        return sum(main([name, *arguments]) for name, arguments in commands.items())

    assert in_child(others) == 0
    made = ("heard/weights/wise-0.5.safetensors", "export", "page.html", "packed.tar")
    assert all((tmp_path / name).exists() for name in made)
