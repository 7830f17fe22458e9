"""Under a launcher: commands for one process are refused once, whatever the launcher's variables say."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch.distributed.run import get_args_parser

import tracer
from tracer import parallel
from tracer.cli import app
from tracer.core.errors import UserError
from tracer.parallel import launch

ALONE = [name for name in (*app._names(), *app.STUDIES) if name not in app.TOGETHER]
ROOT = Path(__file__).parents[2]


def as_process(monkeypatch: pytest.MonkeyPatch, **variables: str | None) -> None:
    monkeypatch.setattr(parallel, "COURTESY", 0.0)
    for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("command", [*ALONE, "train --data digits --dry-run"])
def test_a_command_for_one_process_is_refused_on_one(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in ("0", "1", "7"):
        as_process(monkeypatch, WORLD_SIZE="8", RANK=rank, LOCAL_RANK=rank)
        assert app.main(command.split()) == 2
        output = capsys.readouterr()
        assert output.out == ""
        sentence = (
            f"`tracer {command.split()[0]}.* runs in one process, and 8 were started: leave out torchrun"
        )
        assert bool(re.match(f"error: {sentence}", output.err)) == (rank == "0")
        assert len(output.err.splitlines()) == (rank == "0")


@pytest.mark.parametrize(
    "variables",
    [
        {"WORLD_SIZE": "2"},  # of a shell, without a launcher
        {"WORLD_SIZE": "2", "RANK": "first"},
        {"WORLD_SIZE": "2", "RANK": "2"},
        {"WORLD_SIZE": "2", "RANK": "-1"},
        {"WORLD_SIZE": "two"},
        {"WORLD_SIZE": "0"},
    ],
)
def test_numbers_that_no_launcher_gives_are_a_sentence(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_process(monkeypatch, **variables)
    assert app.main(["sweep", "tracer.recipes.ablation:beta"]) == 2
    assert "unset" in capsys.readouterr().err


def test_one_process_of_a_launcher_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    as_process(monkeypatch, WORLD_SIZE="1", RANK="0")
    assert app.main(["list", "kernels"]) == 0


@pytest.mark.parametrize("command", app.TOGETHER)
def test_the_others_are_not(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    as_process(monkeypatch, WORLD_SIZE="2", RANK="0")
    monkeypatch.setitem(
        sys.modules, f"tracer.cli.commands.{command}", SimpleNamespace(main=lambda arguments: 17)
    )
    assert app.main([command]) == 17


def test_the_search_is_refused_in_python_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes would wait for each other's trials for ever."""
    as_process(monkeypatch, WORLD_SIZE="2", RANK="0")
    with pytest.raises(UserError, match=r"tracer.fit runs in one process"):
        tracer.fit("digits")


def test_a_process_knows_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    as_process(monkeypatch, WORLD_SIZE="8", RANK="5", LOCAL_RANK="1", LOCAL_WORLD_SIZE="4")
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    assert launch() == (5, 8, 1, 4, False)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert launch().restarts


def test_torchrun_takes_its_commands_on_the_page_and_restarts_in_all() -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"```.*?\n(.*?)```", page, re.DOTALL))
    commands = [line for line in blocks.splitlines() if "torchrun " in line]
    assert len(commands) >= 5
    for line in commands:
        words = shlex.split(line.partition("torchrun ")[2].partition(" #")[0])
        words = [re.sub(r"\$\w+", "2", word) for word in words]
        options = get_args_parser().parse_args(words)
        assert options.max_restarts == 3, line
        assert options.module, line
        assert options.training_script == "tracer", line
        assert options.training_script_args[0] in app.TOGETHER, line
