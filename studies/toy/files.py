"""What a study leaves beside its runs: the numbers as JSON, CSV and text, and the figures drawn from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from studies.figure import save
from studies.toy import figures, table
from studies.toy.study import Found, Task
from studies.toy.teaching import Curves
from tracer.core.errors import UserError
from tracer.storage.atomic import write_json, write_text
from tracer.storage.provenance import origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_comparison(found: Found, out: Path, command: str) -> str:
    """Write the rows that a command has made, their table and their figures; returns the table."""
    name = f"toy-{found.task}"
    told = table.text(found)
    write_json(out / f"{name}.json", {**origin(command), **found.to_json()})
    write_text(out / f"{name}.csv", table.comma_separated(found.rows))
    write_text(out / f"{name}.txt", told)
    write_text(out / f"{name}.md", table.markdown(found))
    _save(drawn_comparison(found), out)
    return told


def write_teachers(taught: Mapping[str, Curves], task: Task, out: Path, command: str) -> str:
    """Write the curves that a command has made, the table of their shapes and their figures; returns the table."""
    told, name = table.shapes(taught), _named(task, "teachers")
    curves = {title: asdict(run) for title, run in taught.items()}
    write_json(out / f"{name}.json", {**origin(command), "task": task, "teachers": curves})
    write_text(out / f"{name}.txt", told)
    _save(drawn_teachers(taught, task), out)
    return told


def show(file: Path, out: Path | None = None) -> str:
    """The table of a study's JSON, for a comparison in Markdown; figures are drawn anew if there is a folder for them.

    Nothing is trained: `tracer toy --show studies/toy/results/colour.json --out docs/figures`.
    """
    try:
        content = json.loads(file.read_text())
        found = read_teachers(file) if "teachers" in content else read_comparison(file)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"--show {file}: no JSON that a toy study has written ({error!r})") from error
    if out:
        drawn = (
            drawn_comparison(found) if isinstance(found, Found) else drawn_teachers(found, content["task"])
        )
        for name, figure in drawn.items():
            save(figure, out, name, formats=("svg",))  # as pages have them
    return table.markdown(found) if isinstance(found, Found) else table.shapes(found)


def drawn_comparison(found: Found) -> dict[str, Figure]:
    """The figures of a comparison by the names of their files."""
    name = f"toy-{found.task}"
    return {name: figures.outcome(found), f"{name}-frontier": figures.frontier(found)}


def drawn_teachers(taught: Mapping[str, Curves], task: Task) -> dict[str, Figure]:
    """The figures of the teachers by the names of their files."""
    return {_named(task, name): figure for name, figure in figures.teachers(taught).items()}


def _named(task: Task, name: str) -> str:
    """The paper's task is the colour and goes unsaid."""
    return f"toy-{name}" if task == "colour" else f"toy-{task}-{name}"


def _save(drawn: Mapping[str, Figure], out: Path) -> None:
    for name, figure in drawn.items():
        save(figure, out, name)


def read_comparison(file: Path) -> Found:
    """The rows of a study, from its JSON."""
    return Found.from_json(json.loads(file.read_text()))


def read_teachers(file: Path) -> dict[str, Curves]:
    """The curves of a study, from their JSON."""
    return {name: Curves(**run) for name, run in json.loads(file.read_text())["teachers"].items()}
