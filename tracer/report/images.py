"""Find the images behind predictions again, and make thumbnails of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO

from PIL import Image

from tracer.core.errors import UserError
from tracer.data.classes import normal_name
from tracer.data.encoded import draft
from tracer.data.examples import Examples
from tracer.data.place import leaves_machine
from tracer.evaluation.test_sets import examples_of, local
from tracer.report.paired import Paired
from tracer.report.run_data import RunData
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
        if data.classes and (own_label < 0 or normal_name(examples.classes[own_label]) != normal_name(label)):
            raise UserError(f"the data have changed since the evaluation: {name!r} is no longer {label!r}")
        uris[row] = encode(draft(examples.images, index, (SIDE, SIDE)).image)
    return uris


def _sources(run: RunData, data: Paired) -> Sequence[Examples]:
    """The examples among which the images are: of a test set, or of the run's own data."""
    if data.role == "task":
        return own_images(Run.open(run.folder))
    if not local(data.source):
        raise UserError(f"{data.name} is not on this machine, and a report downloads nothing")
    return (examples_of(data.source),)


def own_images(run: Run) -> tuple[Examples, Examples]:
    """The images that a run held out, and those it trained on; a UserError where they are not on this machine."""
    experiment = run.experiment
    for spec in filter(None, (experiment.data, experiment.held_out)):
        if leaves_machine(spec):
            raise UserError(f"{spec} is not on this machine, and a report downloads nothing")
    share = None if experiment.held_out else experiment.held_out_share
    settled = replace(experiment, held_out_share=share)
    parts = divide_data(settled, lambda examples: examples, run.class_names)
    return parts.held_out, parts.train  # skipping unreadable images may have moved some between them
