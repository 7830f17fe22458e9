"""Whole numbers on the command line: one that makes no sense is refused by its flag, before any work."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import pytest

from tracer.cli.app import _names, main
from tracer.cli.flags import cli, parse
from tracer.core.errors import UserError

DIGITS = ["--data", "digits", "--model", "tiny-28", "--pretrained", "none"]
# How each command is called, and the least that each of its whole numbers may be.
COMMANDS: dict[str, tuple[list[str], dict[str, int]]] = {
    "analyse": (["nowhere"], {"samples": 4, "batch": 1, "stops": 2}),
    "bench": ([], {"batch": 2, "rounds": 1}),
    "demo": ([], {"seed": 0}),
    "evidence": (["quick"], {"jobs": 1}),
    "fit": (["--data", "digits", "--model", "tiny-28"], {"steps": 1, "batch": 1, "seed": 0, "workers": 0}),
    "merge": (["nowhere", "--tpgm", "rows"], {"steps": 1}),
    "pack": (["digits", "--out", "new.tar"], {"side": 1}),
    "predict": (["tiny-28", "digits", "--pretrained", "none"], {"top": 1}),
    "resume": (["nowhere"], {"workers": 0, "save-every": 1}),
    "sweep": (["tracer.recipes.ablation:beta"], {"jobs": 1, "shrink": 1, "only": 0, "workers": 0}),
    "theory": ([], {"instances": 1, "seed": 0}),
    "toy": ([], {"seeds": 1, "steps": 1, "pretraining": 1}),
    "train": (
        ["tracer", *DIGITS],
        {
            "steps": 1,
            "batch": 1,
            "chunk": 1,
            "workers": 0,
            "save-every": 1,
            "seed": 0,
            "every": 1,
            "distill-pairs": 1,
        },
    ),
    "try": (["nowhere"], {"port": 0}),
}
NUMBERS = [
    (command, flag, least) for command, (_, flags) in COMMANDS.items() for flag, least in flags.items()
]


@pytest.mark.parametrize("below", [1, 2])
@pytest.mark.parametrize(("command", "flag", "least"), NUMBERS)
def test_a_number_too_small_is_refused_by_name_before_any_work(
    command: str,
    flag: str,
    least: int,
    below: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    assert main([command, *COMMANDS[command][0], f"--{flag}", str(least - below)]) == 2
    told = capsys.readouterr().err
    assert re.search(rf"\b{flag}\b\D* {least - below}\b", told), told
    assert re.search(r"\d (or|to)|at least|more than \d", told), f"no valid range: {told}"
    assert not list(tmp_path.iterdir()), "work started before the refusal"


@pytest.mark.parametrize("command", _names())
def test_no_whole_number_of_a_command_is_forgotten_here(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit):
        main([command, *(["tracer"] if command == "train" else []), "--help-all"])
    shown = capsys.readouterr().out
    asked = set(re.findall(r"--([a-z-]+) INT\b", shown))
    assert asked == set(COMMANDS.get(command, ([], {}))[1])


def test_values_that_begin_with_a_dash_are_values_and_switches_take_none() -> None:
    def example(*, low: float = 0.0, several: tuple[float, ...] = (), on: bool = False) -> object:
        return low, several, on

    assert cli(example, ["--low", "-1e-3", "--several", "-.5", "-inf"], "example") == (
        -1e-3,
        (-0.5, -inf),
        False,
    )
    with pytest.raises(UserError, match="--on takes no value"):
        cli(example, ["--on=yes"], "example")
    with pytest.raises(UserError, match="has no place for 'word'"):
        cli(example, ["--on", "word"], "example")


def test_two_parameters_of_one_name_are_refused() -> None:
    def one(*, jobs: int = 1) -> None: ...

    with pytest.raises(UserError, match="jobs already"):
        parse((one, one), [], "example", "")
