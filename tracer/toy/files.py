"""What a study leaves beside its runs: the numbers as JSON, CSV and text, and the figures drawn from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tracer.atomic import write_json, write_text
from tracer.figure import save
from tracer.origin import origin
from tracer.toy import figures, table
from tracer.toy.study import Found
from tracer.toy.teaching import Curves


def write_comparison(found: Found, out: Path, command: str) -> str:
    """Write the rows that a command has made, their table and their figures; returns the table."""
    name = f"toy-{found.task}"
    told = table.text(found.rows)
    write_json(out / f"{name}.json", {**origin(command), **found.to_json()})
    write_text(out / f"{name}.csv", table.comma_separated(found.rows))
    write_text(out / f"{name}.txt", told)
    save(figures.outcome(found), out, name)
    save(figures.frontier(found), out, f"{name}-frontier")
    return told


def write_teachers(taught: Mapping[str, Curves], out: Path, command: str) -> str:
    """Write the curves that a command has made, the table of their shapes and their figures; returns the table."""
    told = table.shapes(taught)
    curves = {name: asdict(run) for name, run in taught.items()}
    write_json(out / "toy-teachers.json", {**origin(command), "teachers": curves})
    write_text(out / "toy-teachers.txt", told)
    for name, figure in figures.teachers(taught).items():
        save(figure, out, f"toy-{name}")
    return told


def read_comparison(file: Path) -> Found:
    """The rows of a study, from its JSON."""
    return Found.from_json(json.loads(file.read_text()))


def read_teachers(file: Path) -> dict[str, Curves]:
    """The curves of a study, from their JSON."""
    return {name: Curves(**run) for name, run in json.loads(file.read_text())["teachers"].items()}
