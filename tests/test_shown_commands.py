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

import numpy as np
import pytest
from PIL import Image
from shown_commands import ROOT, shown_commands
from starting import environment

from studies.faults.process import ForkedProcess, run_command
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


# Served until they are stopped, or work of many minutes: their flags are checked above.
LONG = ("tracer demo", "tracer try", "tracer sweep", "tracer fit")
SHORT = [command for command in SHOWN if not command.startswith(("python ", *LONG))]
QUICK = ["--batch", "4", "--templates", "name"]


def done_at(home: Path, *words: str) -> None:
    ended = run_command([*words], inject=partial(os.chdir, home))
    assert ended.code == 0, ended.output


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory, minute: str) -> Path:
    """A folder with the data, the runs and the model that are named in the commands; all runs have one start."""
    home, rng = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    lines = ["image,caption"]
    for folder in ("photos", "test", "other", "new"):
        for number in range(24):
            place = home / folder / ("cat", "dog")[number % 2] / f"{number}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(place)
            lines.append(f"{place.relative_to(home)},picture {folder} {number}")
    (home / "pairs.csv").write_text("\n".join(lines))
    Image.new("RGB", (32, 32)).save(home / "photo.jpg")
    data = ["train", "flyp", "--data", "photos", "--steps", "2", *QUICK]
    done_at(home, *data, "--model", minute, "--pretrained", "none", "--out", "runs/first")
    done_at(home, "export", "runs/first", "--weights", "pretrained", "--out", "start")
    for seed, name in enumerate(("1a2b3c", "a", "b", "c", "beta/x", "beta/y", "fit-1a2b/best")):
        done_at(home, *data, "--model", "start", "--seed", str(seed), "--out", f"runs/{name}")
    done_at(home, "export", "runs/a", "--out", "my-model")
    return home


@pytest.mark.slow
@pytest.mark.parametrize("command", SHORT)
def test_a_command_that_is_shown_does_its_work(command: str, at_home: Path) -> None:
    """With a small model in the place of ViT-B-16, and few steps."""
    words = ["start" if word == "ViT-B-16" else word for word in shlex.split(command)[1:]]
    if words[0] == "train":
        words += ["--model", "start", *QUICK, *([] if "--epochs" in words else ["--steps", "2"])]
    done_at(at_home, *words)
