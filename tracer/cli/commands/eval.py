"""Measure a run or a model: `tracer eval RUN|MODEL --data … | --suite … --root …`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from tracer.cli.console import console, errors, stop_at_once
from tracer.core.errors import UserError, unknown
from tracer.data.reading import AS_FOUND, Reading
from tracer.evaluation.predict import Scorer
from tracer.evaluation.score import Row, assess
from tracer.evaluation.score_tables import score_tables
from tracer.evaluation.suites import EMBEDDED, SUITES, Opening, Role, Suite, own, told_places, with_role
from tracer.evaluation.suites import corrupt as corrupted
from tracer.evaluation.suites.emojishift import named
from tracer.evaluation.tables import FORMATS, document
from tracer.evaluation.target import Target, targets
from tracer.models.prompts import templates as prompts
from tracer.parallel import World, launched
from tracer.report.reproduce import flag
from tracer.report.scored import ROWS, read_rows
from tracer.storage.atomic import write_json

NOT_KEPT = "nothing is written: --out FOLDER keeps predictions and all measures"


def main(arguments: list[str]) -> int:
    def measure(
        model: Annotated[str, tyro.conf.Positional],
        data: tuple[str, ...] = (),
        suite: str | None = None,
        root: Path | None = None,
        at: tuple[str, ...] = (),
        corrupt: tuple[str, ...] = (),
        pretrained: str = "auto",
        weights: str | None = None,
        templates: str | None = None,
        reading: Reading = AS_FOUND,
        allow_partial: bool = False,
        format: str = "text",
        out: Path | None = None,
        device: str = "auto",
    ) -> int:
        """Accuracy and calibration of a run, an exported folder or a model of open_clip; retrieval over captions.

        A run is shown before and after training. Its predictions are kept, those of another model with --out, so that
        further measures can be had without the model. Under torchrun the processes share the images.

        Args:
            model: a run's directory, a folder with an export, or a model's name.
            data: what to measure on; several are written role=data with a role out of id, ood and retain.
            suite: imagenet, iwildcam, fmow or emojishift, instead of --data; emojishift:STYLE:FOLD for other than the
                run's own.
            root: the folder that holds the suite's data sets.
            at: sets of imagenet that lie elsewhere, each NAME=PLACE: a folder, a table, shards or hf:NAME, with a name
                out of val, v2, r, a, sketch and objectnet.
            corrupt: also measure the id sets under corruptions, each KIND:SEVERITY, KIND (severities 1, 3, 5) or all:
                gaussian_noise, shot_noise, gaussian_blur, defocus_blur, jpeg, brightness, contrast, pixelate.
            pretrained: weights, where MODEL is a name.
            weights: of a run: result, student, teacher, pretrained, or a merge's name; by default the result, and the
                pretrained model beside it.
            templates: prompts: openai, simple, name, or a file.
            allow_partial: score incomplete data sets and mark every number that comes from them.
            format: text, markdown, latex, csv or json.
            out: where predictions and rows are written; by default in the run's folder predictions, and nowhere for
                a model that is no run.
            device: auto, cpu, cuda or mps.
        """
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        told = {
            "data": data,
            "suite": suite,
            "root": root,
            "at": at,
            "corrupt": corrupt,
            "templates": templates,
        }
        told |= {**reading.flags, "allow_partial": allow_partial}
        asked = [word for name, value in told.items() if value for word in flag(name, value)]
        first, *others = targets(model, pretrained, weights, out)
        with launched(device, lost=stop_at_once) as world:
            if world.first:
                _announce(first, data, reading)
            chosen = world.together(
                lambda: corrupted(_suite(data, suite, root, at, templates, reading, first), *corrupt)
            )
            opening = world.together(lambda: chosen.open(allow_partial))
            if world.first and data and reading.classes is None:
                _warn_of_other_classes(first, opening)
            made = {each.name: _measured(each, opening, world, asked) for each in (first, *others)}
            if world.first:
                shown = {each.name: made[each.name] for each in (*others, first)}
                console.out(document(score_tables(shown, chosen, opening), format), highlight=False)
                _say_where(first, *others)
        return 0

    flat = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(measure, args=arguments, prog="tracer eval", config=flat)


def _measured(target: Target, opening: Opening, world: World, asked: list[str]) -> list[Row]:
    """All rows; several processes share the images, and the first one writes."""
    student = target.student()
    world.place(student)
    scorer = Scorer(student, world, target.trained_on)
    keep = target.keep if world.first else None
    found = assess(scorer, opening.shifts, keep, target.temperature)
    made = [row for _, rows in found for row in rows]
    if keep is not None:
        _add(keep, [row._asdict() | {"asked": asked} for row in made])
    return made


def _add(keep: Path, made: list[dict[str, Any]]) -> None:
    """Keep rows beside those of other test sets; a set that is measured again gets new ones."""
    notes: list[str] = []
    sets = _by_set(read_rows(keep, notes)) | _by_set(made)
    for note in notes:
        _say(f"{note}; what cannot be read there is replaced")
    write_json(keep / ROWS, [row for rows in sets.values() for row in rows])


def _by_set(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    sets: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sets.setdefault(row["shift"], []).append(row)
    return sets


def _say_where(*measured: Target) -> None:
    places = [str(each.keep) for each in measured if each.keep is not None]
    _say(f"predictions and all measures are in {' and '.join(places)}" if places else NOT_KEPT)


def _announce(target: Target, data: tuple[str, ...], asked: Reading) -> None:
    """Say what is taken over from the run."""
    for role, spec in _roles(data):
        read = _reading(target, role, spec, asked).flags
        taken = [f"--{name} {value}" for name, value in read.items() if name not in asked.flags]
        if taken:
            _say(f"{spec} is read as the run read its data: {' '.join(taken)}")


def _warn_of_other_classes(target: Target, opening: Opening) -> None:
    """A run is scored over its own classes; say where the data have others."""
    for shift, examples, _ in opening.shifts:
        other = [name for name in examples.classes if name not in target.trained_on]
        if target.trained_on and shift.role != "retain" and other and not shift.derived:
            told = f"{shift.name} has classes the run was not trained on, such as {other[0]!r}"
            _say(f"{told}: scored over its own {len(shift.classes)} (--classes FILE gives another list)")


def _say(line: str) -> None:
    errors.print(line, highlight=False, markup=False)


def _suite(
    data: tuple[str, ...],
    name: str | None,
    root: Path | None,
    at: tuple[str, ...],
    templates: str | None,
    reading: Reading,
    target: Target,
) -> Suite:
    if bool(data) == (name is not None):
        raise UserError("give what to measure on: either --data or --suite")
    if name is not None:
        if reading.flags:
            raise UserError(f"--{next(iter(reading.flags))} means nothing for a suite: leave it out")
        kind, _, which = name.partition(":")
        if kind not in SUITES:
            raise unknown("suite", kind, SUITES)
        if which and kind not in EMBEDDED:
            raise UserError(f"--suite {name}: {kind} is one suite, leave out {which!r}")
        if kind not in EMBEDDED and root is None and not at:
            raise UserError(f"--suite {name} needs --root, the folder that holds its data sets")
        if kind != "imagenet" and at:
            raise UserError(f"--at means nothing for {kind}: it says where sets of imagenet lie")
        trained = target.experiment.data if target.experiment else None
        apart = {"elsewhere": told_places(at)} if at else {}
        chosen = named(name, trained) if kind in EMBEDDED else SUITES[kind](root, **apart)
        return chosen.prompted(prompts(templates)) if templates else chosen
    shifts = (
        own(
            spec,
            role,
            name=None if data == (spec,) else spec,
            trained_on=target.trained_on,
            prompts=templates or (None if role == "retain" else target.templates),
            **_reading(target, role, spec, reading).keywords,
        )
        for role, spec in _roles(data)
    )
    return Suite("own", tuple(shifts))


def _reading(target: Target, role: Role, spec: str, asked: Reading) -> Reading:
    """What is to be retained is none of the run's own data."""
    return asked if role == "retain" else target.reading(spec, asked)


def _roles(data: tuple[str, ...]) -> list[tuple[Role, str]]:
    return [("id", data[0])] if len(data) == 1 and "=" not in data[0] else [*map(with_role, data)]
