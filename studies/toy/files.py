"""Write and read the results of a study: numbers as JSON, CSV, text and Markdown, and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from studies.figure import save
from studies.toy import figures, table
from studies.toy.study import Results, Task
from studies.toy.teaching import Curves
from tracer.core.errors import UserError
from tracer.storage.atomic import write_json, write_text
from tracer.storage.provenance import origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_comparison(results: Results, out: Path, command: str) -> str:
    """Write the results of a comparison, its table and its figures; returns the table."""
    name = f"toy-{results.task}"
    text = table.text(results)
    write_json(out / f"{name}.json", {**origin(command), **results.to_json()})
    write_text(out / f"{name}.csv", table.comma_separated(results.rows))
    write_text(out / f"{name}.txt", text)
    write_text(out / f"{name}.md", table.markdown(results))
    _save(drawn_comparison(results), out)
    return text


def write_teachers(runs: Mapping[str, Curves], task: Task, out: Path, command: str) -> str:
    """Write the curves of the teachers, the table of their shapes and their figures; returns the table."""
    text, name = table.shapes(runs), _named(task, "teachers")
    curves = {title: asdict(run) for title, run in runs.items()}
    write_json(out / f"{name}.json", {**origin(command), "task": task, "teachers": curves})
    write_text(out / f"{name}.txt", text)
    _save(drawn_teachers(runs, task), out)
    return text


def show(file: Path, out: Path | None = None) -> str:
    """The table of a result file, in Markdown for a comparison; its figures are drawn into `out` if given.

    Example: `tracer toy --show studies/toy/results/colour.json --out docs/figures`.
    """
    try:
        content = json.loads(file.read_text())
        results = read_teachers(file) if "teachers" in content else read_comparison(file)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"--show {file}: not a result file of the toy study ({error!r})") from error
    if out:
        drawn = (
            drawn_comparison(results)
            if isinstance(results, Results)
            else drawn_teachers(results, content["task"])
        )
        for name, figure in drawn.items():
            save(figure, out, name, formats=("svg",))  # the format of the pages
    return table.markdown(results) if isinstance(results, Results) else table.shapes(results)


def drawn_comparison(results: Results) -> dict[str, Figure]:
    """The figures of a comparison by the names of their files."""
    name = f"toy-{results.task}"
    return {name: figures.outcome(results), f"{name}-frontier": figures.frontier(results)}


def drawn_teachers(runs: Mapping[str, Curves], task: Task) -> dict[str, Figure]:
    """The figures of the teachers by the names of their files."""
    return {_named(task, name): figure for name, figure in figures.teachers(runs).items()}


def _named(task: Task, name: str) -> str:
    """The name of a file; the paper's task, the colour, is left out."""
    return f"toy-{name}" if task == "colour" else f"toy-{task}-{name}"


def _save(drawn: Mapping[str, Figure], out: Path) -> None:
    for name, figure in drawn.items():
        save(figure, out, name)


def read_comparison(file: Path) -> Results:
    """The rows of a study, from its JSON."""
    return Results.from_json(json.loads(file.read_text()))


def read_teachers(file: Path) -> dict[str, Curves]:
    """The curves of a study, from their JSON."""
    return {name: Curves(**run) for name, run in json.loads(file.read_text())["teachers"].items()}
