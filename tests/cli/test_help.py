"""The help of a command fits a terminal and names every flag; a misspelt flag is answered with the right one."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from tracer.api.terminal import say
from tracer.cli.app import _names, main
from tracer.cli.commands import train
from tracer.cli.flags import flags_of
from tracer.methods.base import methods
from tracer.runs.experiment import Settings


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    assert stop.value.code == 0
    return capsys.readouterr().out.splitlines()


def names_of(method: str) -> set[str]:
    return {flag.name for part in (Settings, methods()[method], train.Output) for flag in flags_of(part)}


@pytest.mark.parametrize("method", methods())
def test_the_help_of_train_is_short_and_names_every_flag_once(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "train", method, "--help")
    assert len(lines) < 45
    assert max(map(len, lines)) <= 80
    listed = "\n".join(lines).partition("Examples")[0]
    counts = Counter(re.findall(r"(?<![\w`])--[a-z0-9-]+", listed.partition("usage")[2].partition("\n")[2]))
    counts.pop("--help-all", None)
    assert set(counts) == names_of(method)
    assert counts["--data"] == 1


def test_the_flags_that_matter_stand_on_top(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [line.split()[0] for line in shown(capsys, "train", "--help") if line.startswith("  --")]
    assert flags == ["--data", "--model", "--epochs", "--lr", "--out", "--dry-run"]


@pytest.mark.parametrize("method", methods())
def test_the_long_help_explains_every_flag_under_one_question(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "train", method, "--help-all")
    explained = Counter(line.split()[0] for line in lines if line.startswith("  --"))
    assert explained == Counter(names_of(method))
    assert all(f"{question}:" in lines for question in ("data", "model", "training", "output"))


@pytest.mark.parametrize("command", _names())
def test_no_help_shows_the_types_of_python(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(shown(capsys, command, "--help-all"))
    assert not re.search(r"\{None|None\||\(default: (None|False|)\)|[{}]", text)
    flags = [line for line in text.splitlines() if re.match(r" {2}(--|[A-Z]| {14})", line)]
    assert max(map(len, flags)) <= 80


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["train", "--dta", "digits"], "--data"),
        (["train", "--data", "digits", "--epoch", "3"], "--epochs"),
        (["train", "lipsum", "--data", "digits", "--strenght=2"], "--strength"),
        (["eval", "tiny-28", "--dat", "digits"], "--data"),
        (["merge", "runs/a", "--wyse", "0.5"], "--wise"),
        (["check", "digits", "--strct"], "--strict"),
        (["pack", "digits", "--out", "a.tar", "--sid", "3"], "--side"),
        (["resume", "runs/a", "--worker", "3"], "--workers"),
        (["report", "runs/a", "--figure", "a"], "--figures"),
        (["analyse", "runs/a", "--sample", "4"], "--samples"),
        (["export", "runs/a", "--weight", "a"], "--weights"),
        (["demo", "--sed", "4"], "--seed"),
        (["list", "models", "--lik", "a"], "--like"),
        (["sweep", "tracer.recipes.ablation:beta", "--valus", "1"], "--values"),
        (["sweep", "tracer.recipes.ablation:beta", "--job", "1"], "--jobs"),
    ],
)
def test_a_misspelt_flag_is_answered_with_the_right_one(
    arguments: list[str],
    meant: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(arguments) == 2
    assert f"did you mean {meant}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_underscores_in_a_flag_are_dashes(tmp_path: Path) -> None:
    experiment, output = train.requested(["--data", "digits", "--held_out", "digits", f"--out={tmp_path}"])
    assert (experiment.held_out, output.out) == ("digits", tmp_path)


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train"]) == 2
    assert "tracer train needs --data" in capsys.readouterr().err


def test_the_overview_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_sentences_are_broken_between_words_on_a_terminal_and_commands_are_not() -> None:
    for terminal in (True, False):
        file = io.StringIO()
        to = Console(file=file, force_terminal=terminal, width=80, soft_wrap=True)
        say("A sentence that goes on. " * 8, to=to)
        say("Next: tracer merge " + "--flag " * 20, to=to)
        lines = file.getvalue().splitlines()
        assert len(lines) == (4 if terminal else 2)
        assert lines[-1].count("--flag") == 20
        assert not terminal or max(map(len, lines[:-1])) <= 80
