"""What docstrings and helps show for people to type is what the commands take; the examples run as they are shown."""

from __future__ import annotations

import inspect
import os
import runpy
import shlex
import subprocess
import sys
from functools import partial
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from shown_commands import ROOT, shown_commands
from starting import environment

from studies.faults.process import ForkedProcess
from tracer.cli import app, flags, sweep_dry_run
from tracer.cli.commands import sweep, train

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SOURCES = [file for top in ("tracer", "studies") for file in sorted((ROOT / top).rglob("*.py"))]
SHOWN = {command: str(file.relative_to(ROOT)) for file in SOURCES for command in shown_commands(file)}
RECIPE = "from tracer.runs.experiment import Experiment\ndef study():\n    return Experiment(data='digits')\n"


def test_commands_are_shown() -> None:
    assert all(map(shown_commands, EXAMPLES))
    assert {command.split()[1] for command in SHOWN} >= {"train", "fit", "eval", "export", "merge", "sweep"}


def typed(words: list[str]) -> int:
    """What `python FILE …` and `accelerate launch FILE …` do, in this process."""
    sys.argv = words[words.index(next(word for word in words if word.endswith(".py"))) :]
    runpy.run_path(str(ROOT / sys.argv[0]), run_name="__main__")
    return 0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_commands_of_an_example_run_one_after_the_other(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in shown_commands(example):
        program, action, *words = shlex.split(command)
        if program == "pip":
            assert action == "install"
            assert all(distribution(name) for name in words)  # it is here, under this name
            continue
        ended = ForkedProcess(partial(typed, [action, *words])).wait()
        assert ended.code == 0, f"{command}\n{ended.output}"


@pytest.mark.slow  # starts Python twice for each
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_commands_of_an_example_run_in_a_shell(example: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    paths = {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "HOME": str(tmp_path),
    }
    for command in shown_commands(example):
        if not command.startswith("pip "):
            ended = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment() | paths, capture_output=True, text=True
            )
            assert ended.returncode == 0, f"{command}\n{ended.stderr}"


class WouldStart(Exception):
    """The command has understood all its flags."""


def start(*arguments: Any, **options: Any) -> None:
    raise WouldStart


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_that_is_shown_is_understood(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to its first work: data and runs of these names are not here."""
    program, *words = shlex.split(command.partition(" > ")[0])
    if program == "python":
        assert words[0] == "-m"
        assert find_spec(words[1]) is not None, SHOWN[command]
        return
    built = flags.call

    def call(function: Any, values: Any) -> Any:
        for name in inspect.signature(function).parameters:
            if name not in values:
                call(get_type_hints(function)[name], values)
        return built(function, values) if inspect.isclass(function) else start()

    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(RECIPE)
    monkeypatch.setattr(flags, "call", call)
    for module, work in (
        (train, "carry_out"),
        (train, "dry_run"),
        (sweep_dry_run, "dry_run"),
        (sweep, "_run"),
    ):
        monkeypatch.setattr(module, work, start)
    monkeypatch.setattr(sweep, "_require_test_sets", lambda recipe: None)
    monkeypatch.setattr(sweep, "array_script", start)
    assert program == "tracer", SHOWN[command]
    with pytest.raises(WouldStart):
        assert app.main(words) == 0
