"""Find the images behind predictions again, and make thumbnails of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import NoReturn

from PIL import Image

from tracer.core.command_line import flag_values
from tracer.core.errors import UserError
from tracer.data.encoded import draft
from tracer.data.examples import Examples
from tracer.data.place import leaves_machine
from tracer.evaluation.target import Target
from tracer.evaluation.test_sets import TestSets
from tracer.report.paired import Paired
from tracer.report.run_data import RunData
from tracer.runs.experiment import Experiment
from tracer.runs.plan import divide_data
from tracer.runs.run import Run
from tracer.storage.images import BROKEN

SIDE = 96  # pixels of the longer side of a thumbnail
QUALITY = 80


def thumbnails(run: RunData, data: Paired, rows: Iterable[int]) -> dict[int, str]:
    """The images of these rows as data URIs; a UserError where the data are gone or have changed."""
    try:
        return _thumbnails(_sources(run, data), data, list(rows))
    except (UserError, *BROKEN) as error:
        raise UserError(f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from error


def encode(image: Image.Image) -> str:
    """A small JPEG of an RGB image as a data URI."""
    image = image.copy()
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    file = BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def _thumbnails(sources: Sequence[Examples], data: Paired, rows: list[int]) -> dict[int, str]:
    places = {each: (examples, i) for examples in reversed(sources) for i, each in enumerate(examples.ids)}
    uris = {}
    for row in rows:
        name, label = data.after.ids[row], data.name_of(int(data.after.label[row]))
        if name not in places:
            raise UserError(f"the data have changed since the evaluation: there is no image {name!r}")
        examples, index = places[name]
        own_label = int(examples.labels[index])
        if data.classes and (own_label < 0 or examples.classes[own_label] != label):
            raise UserError(f"the data have changed since the evaluation: {name!r} is no longer {label!r}")
        uris[row] = encode(draft(examples.images, index, (SIDE, SIDE)).image)
    return uris


def _sources(run: RunData, data: Paired) -> Sequence[Examples]:
    """The examples among which the images are: of a test set, or of the run's own data."""
    if not data.role:
        return own_images(Experiment.from_json(run.experiment))
    _require_local(*(value for values in flag_values(data.flags).values() for value in values))
    opened = Run.open(run.folder)
    target = Target(run.name, _no_student, opened.task("result"), run=opened)
    suite = TestSets.from_flags(data.flags).suite_for(target)
    shift = next((shift for shift in suite if shift.name == data.name), None)
    if shift is None:
        raise UserError(f"{data.name} is not among the data that were evaluated")
    return (shift.load(),)


def own_images(experiment: Experiment) -> tuple[Examples, Examples]:
    """The images that a run held out, and those it trained on; a UserError where they are not on this machine."""
    _require_local(experiment.data, experiment.held_out or "")
    share = None if experiment.held_out else experiment.held_out_share
    parts = divide_data(replace(experiment, held_out_share=share), lambda examples: examples)
    return parts.held_out, parts.train  # skipping unreadable images may have moved some between them


def _no_student() -> NoReturn:
    raise AssertionError("a report loads no model")


def _require_local(*specs: str) -> None:
    """Raise for data on another machine: a report downloads nothing."""
    for spec in specs:
        if leaves_machine(spec):
            raise UserError(f"{spec} is not on this machine, and a report downloads nothing")
