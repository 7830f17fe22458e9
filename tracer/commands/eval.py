"""Measure a run or a model: `tracer eval RUN|MODEL --data … | --suite … --root …`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from tracer.assess import SCALED_ECE, Row, assess
from tracer.atomic import write_json
from tracer.console import console, errors, stop_at_once
from tracer.data.prompts import templates as prompts
from tracer.errors import UserError, unknown
from tracer.evaluate import Scorer
from tracer.metrics import Interval, accuracy, ece
from tracer.model import Student, load
from tracer.parallel import World, launched
from tracer.run import DESCRIPTION, Run
from tracer.suites import EMBEDDED, SUITES, Opening, Suite, own, suite
from tracer.tables import FORMATS, Cell, Column, Table, cell, render, rules, tabulated, text
from tracer.zoo import pretrained_tag

SHOWN = (accuracy, ece, SCALED_ECE)  # all others are in the rows that are written


def main(arguments: list[str]) -> int:
    def measure(
        model: Annotated[str, tyro.conf.Positional],
        data: tuple[str, ...] = (),
        suite: str | None = None,
        root: Path | None = None,
        pretrained: str = "auto",
        weights: str = "result",
        templates: str | None = None,
        classes: str | None = None,
        allow_partial: bool = False,
        format: str = "text",
        out: Path | None = None,
        device: str = "auto",
    ) -> int:
        """Accuracy and calibration of a run, an exported folder or a model of open_clip; retrieval over captions.

        Predictions are kept, so that other measures can be had later without the model. Under torchrun the processes
        share the images.

        Args:
            model: a run's directory, a folder with an export, or a model's name.
            data: what to measure on; several are written role=data with a role out of id, ood and retain.
            suite: imagenet, iwildcam, fmow or emojishift, instead of --data.
            root: the folder that holds the suite's data sets.
            pretrained: weights, where MODEL is a name.
            weights: result, student, teacher or pretrained, where MODEL is a run.
            templates: prompts: openai, simple, name, or a file.
            classes: file with the class names.
            allow_partial: score incomplete data sets and mark every number that comes from them.
            format: text, markdown, latex, csv or json.
            out: where predictions and rows are written; by default beside the run.
            device: auto, cpu, cuda or mps.
        """
        chosen = _suite(data, suite, root, templates, classes)
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        keep = out or (
            Path(model) / "predictions" / weights if (Path(model) / DESCRIPTION).is_file() else None
        )
        with launched(device, lost=stop_at_once) as world:
            opening = world.together(lambda: chosen.open(allow_partial))
            made = _measured(subject(model, pretrained, weights), opening, world, keep)
            if world.first:
                console.print(_tables(model, chosen, opening, made, format), highlight=False, markup=False)
            if world.first and keep is not None:
                write_json(keep / "rows.json", [row._asdict() for row in made])
                errors.print(f"predictions and all measures are in {keep}", highlight=False, markup=False)
        return 0

    return tyro.cli(measure, args=arguments, prog="tracer eval", config=(tyro.conf.FlagCreatePairsOff,))


class Subject(NamedTuple):
    """What is to be measured, the classes it was trained on, and the temperature fitted on held-out ones."""

    student: Student
    trained_on: tuple[str, ...] = ()
    temperature: float | None = None


def subject(model: str, pretrained: str, weights: str) -> Subject:
    """What the words on the command line mean: a run, or else a model by name, file or folder."""
    if not (Path(model) / DESCRIPTION).is_file():
        return Subject(load(model, pretrained_tag(model, pretrained)))
    run = Run.open(Path(model))
    measured = run.result.get({"result": "after", "pretrained": "before"}.get(weights, ""), {})
    return Subject(run.student(weights), tuple(run.description["classes"]), measured.get("temperature"))


def _measured(subject: Subject, opening: Opening, world: World, keep: Path | None) -> list[Row]:
    """All rows; several processes share the images, and the first one writes."""
    world.place(subject.student)
    scorer = Scorer(subject.student, world, subject.trained_on)
    found = assess(scorer, opening.shifts, keep if world.first else None, subject.temperature)
    return [row for _, rows in found for row in rows]


def _suite(
    data: tuple[str, ...], name: str | None, root: Path | None, templates: str | None, classes: str | None
) -> Suite:
    if bool(data) == (name is not None):
        raise UserError("give what to measure on: either --data or --suite")
    if name is not None:
        if name not in SUITES:
            raise unknown("suite", name, SUITES)
        if name not in EMBEDDED and root is None:
            raise UserError(f"--suite {name} needs --root, the folder that holds its data sets")
        chosen = SUITES[name]() if name in EMBEDDED else SUITES[name](root)
        return chosen.prompted(prompts(templates)) if templates else chosen
    if len(data) == 1 and "=" not in data[0]:
        return Suite("own", (own(data[0], "id", classes=classes, prompts=templates),))
    return suite(*data, classes=classes, prompts=templates)


def _tables(model: str, chosen: Suite, opening: Opening, made: list[Row], form: str) -> str:
    """One table a measure, in the paper's layout, and one of retrieval."""
    labelled = replace(chosen, shifts=tuple(shift for shift in chosen if shift.classes))
    drawn = []
    for metric in SHOWN:
        cells = {row.shift: _cell(row) for row in made if row.metric == metric.name}
        drawn += [tabulated(metric, labelled, {model: cells})] if cells else []
    drawn += [_retrieval(model, shift.name, made) for shift in chosen if _recalls(shift.name, made)]
    drawn[-1] = replace(drawn[-1], notes=rules(opening))
    return "\n\n".join(
        text(table, intervals=True) if form == "text" else render(table, form) for table in drawn
    )


def _retrieval(model: str, data: str, made: list[Row]) -> Table:
    """Both ways at every depth, for one data set with captions."""
    found = _recalls(data, made)
    columns = (Column(name, name.replace("_to_", "→").replace("@", " R@"), "id") for name in found)
    return Table("recall", "higher", True, tuple(columns), ((model, found),), title=f"captions of {data}")


def _recalls(data: str, made: list[Row]) -> dict[str, Cell]:
    return {row.metric: _cell(row) for row in made if row.shift == data and "@" in row.metric}


def _cell(row: Row) -> Cell:
    return cell(Interval(row.low, row.value, row.high), row.partial)
