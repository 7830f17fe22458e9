"""Tables in Markdown keep their shape, and advised commands their words, whatever is in them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tracer.cli.training import next_step
from tracer.core.command_line import command_line
from tracer.core.markdown import markdown_table
from tracer.training.interrupt import Interrupted

NAMES = ["a|b", "a\\|b", "a\\\\|b", "a\nb", "a\r\nb|c", "|", "\\", "plain"]


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_stays_one_cell(name: str) -> None:
    lines = markdown_table(("class", "n"), [(name, "1")]).split("\n")
    assert len(lines) == 3
    # As GitHub's parser reads it: a backslash takes the next character with it, any other pipe ends the cell.
    assert len(re.findall(r"(?:\\.|[^|\\])+", lines[2][1:-1])) == 2


@pytest.mark.parametrize("folder", ["runs/a b", "runs/a;b", "runs/$(id)", "runs/it's"])
def test_advised_commands_can_be_pasted(folder: str) -> None:
    assert shlex.split(command_line("resume", folder)) == ["tracer", "resume", folder]
    told = str(Interrupted(15, 3, Path(folder))).partition("Go on with: ")[2]
    assert shlex.split(told) == ["tracer", "resume", folder]
    assert shlex.split(next_step(None, Path(folder))) == ["tracer", "export", folder]
