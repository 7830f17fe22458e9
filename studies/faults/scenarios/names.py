"""Names of files and classes with control characters, markup, quotes and line breaks, in every kind of output."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from random import Random

from rich.console import Console

import tracer.api.terminal
from studies.faults.verdict import Verdict, judged
from studies.faults.workspace import Workspace
from tracer.core.command_line import command_line
from tracer.core.errors import UserError, printable
from tracer.core.markdown import markdown_table
from tracer.data.checking.report import command
from tracer.report.chart import Axis, Chart, Point, Series
from tracer.report.svg import svg
from tracer.sweep.slurm import array_script

PARTS = (
    "\x1b[2J",
    "\x1b]0;x\x07",
    "\x9b31m",
    "\u202e",
    "\r",
    "\n",
    "\0",
    "\x7f",
    "<script>alert(1)</script>",
    '"',
    "'",
)
PARTS += (
    "&amp;",
    "</td>",
    "|",
    "\\|",
    "\\",
    "`id`",
    "$(id)",
    "; rm -rf x",
    "a b",
    "é",
    "*",
    "[red]",
    "[/]",
    "--out",
    "#",
)


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """No name steers a terminal, opens a tag, ends a cell or becomes a second word or line of a command."""
    checks = (_terminal, _markdown, _markup, _command, _script)
    for number in range(workspace.count(50, 10_000)):
        name = "".join(workspace.rng.choices(PARTS, k=workspace.rng.randint(1, 5)))
        check = checks[number % len(checks)]
        yield judged(f"{check.__name__.strip('_')} {name!r}", partial(check, name))
    for number in range(workspace.count(1, 40)):
        yield judged(f"shell {number}", partial(_shell, workspace.rng, workspace.folder))


def _harmless(text: str) -> None:
    odd = [each for each in text if not each.isprintable() and each not in "\n\t"]
    assert not odd, f"{odd[0]!r} reached the terminal"


def _terminal(name: str) -> None:
    _harmless(str(UserError(f"no such file: {name}")))
    file = io.StringIO()
    before = tracer.api.terminal.console
    tracer.api.terminal.console = type(before)(file=file, soft_wrap=True, width=200)
    try:
        assert isinstance(tracer.api.terminal.console, Console)
        tracer.api.terminal.show_table(name, ("class", name), [(name, "1")])
        tracer.api.terminal.console.print(name, markup=False, highlight=False)
    finally:
        tracer.api.terminal.console = before
    _harmless(file.getvalue())


def _markdown(name: str) -> None:
    lines = markdown_table(("class", "n"), [(name, "1")]).split("\n")
    assert len(lines) == 3, "a name made a line of its own"
    assert len(_cells(lines[2])) == 2, f"a name made a cell of its own: {lines[2]}"


def _cells(line: str) -> list[str]:
    """The cells as GitHub's parser splits them: a backslash takes the next character with it, other pipes end one."""
    return re.findall(r"(?:\\.|[^|\\])+", line.strip()[1:-1])


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def _tags(name: str) -> list[str]:
    series = Series(name, 0, (Point(0.0, 0.0, note=name), Point(1.0, 1.0, note=name)), mark="both")
    axes = (Axis(name), Axis(name, names=(name, name)))
    parser = _Tags()
    parser.feed(str(svg(Chart(name, name, name, *axes, (series,)))))
    return parser.tags


def _markup(name: str) -> None:
    assert _tags(name) == _tags("x"), "a name opened a tag"


def _command(name: str) -> None:
    assert shlex.split(command_line("resume", name))[-1] == name
    folder = f"./{name}" if name.startswith("-") else name  # a folder; else it would be taken for a flag
    assert shlex.split(command({"data": name}))[-1] == folder


def _script(name: str) -> None:
    script = array_script(name, 2, 1, Path(name), ["tracer", "sweep", name])  # UserError for a line break
    assert next(line for line in script.splitlines() if not line.startswith("#")) == "set -euo pipefail"
    (line,) = (line for line in script.splitlines() if line.startswith("srun "))
    assert shlex.split(line)[3] == name


def _shell(rng: Random, folder: Path) -> None:
    """What a shell makes of an advised command: one word, and nothing is run."""
    name = printable("".join(part for part in rng.choices(PARTS, k=4) if part not in "\0"))
    line = command_line("resume", f"{folder}/{name}").removeprefix("tracer resume ")
    done = subprocess.run(["bash", "-c", f"printf %s {line}"], capture_output=True, text=True, check=False)
    assert done.stdout == f"{folder}/{name}"
