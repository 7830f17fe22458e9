"""Find the images behind predictions again, and make thumbnails of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path

from PIL import Image

from tracer.core.errors import UserError
from tracer.data.division import divide
from tracer.data.encoded import BROKEN, draft
from tracer.data.examples import Examples
from tracer.data.hub import PREFIX
from tracer.data.reading import Reading
from tracer.evaluation.suites import EMBEDDED, SUITES, Shift, Suite, corrupt, own, parse_locations, with_role
from tracer.evaluation.suites.emojishift import suite_from_spec
from tracer.report.paired import Paired
from tracer.report.run_data import RunData
from tracer.runs.experiment import Experiment

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
    experiment = Experiment.from_json(run.experiment)
    if not data.role:
        _require_local(experiment.data, experiment.held_out or "")
        share = None if experiment.held_out else experiment.held_out_share
        parts = divide(experiment.data, experiment.held_out, share, check=_unchecked, **experiment.keywords)
        return parts.held_out, parts.train  # skipping unreadable images may have moved some between them
    words = _words(data.asked)
    _require_local(*(word for values in words.values() for word in values))
    suite = _suite(words, experiment, run.classes)
    shift = next((shift for shift in suite if shift.name == data.name), None)
    if shift is None:
        raise UserError(f"{data.name} is not among the data that were evaluated")
    return (shift.load(),)


def _unchecked(examples: Examples) -> Examples:
    return examples


def _suite(words: dict[str, list[str]], experiment: Experiment, classes: tuple[str, ...]) -> Suite:
    """The test sets of `tracer eval` with these flags."""
    if "suite" in words:
        (name,) = words["suite"]
        if name.partition(":")[0] in EMBEDDED:
            suite = suite_from_spec(name, experiment.data)
        else:
            places = {"elsewhere": parse_locations(words["at"])} if "at" in words else {}
            suite = SUITES[name](Path(words["root"][0]) if "root" in words else None, **places)
    else:
        suite = Suite("own", tuple(_shifts(words, experiment, classes)))
    return corrupt(suite, *words.get("corrupt", ()))


def _shifts(words: dict[str, list[str]], experiment: Experiment, classes: tuple[str, ...]) -> Iterable[Shift]:
    names = {field.name: words.get(field.name.replace("_", "-"), [None])[0] for field in fields(Reading)}
    reading, specs = Reading(**names), words.get("data", [])
    if not specs:
        raise UserError("the evaluation does not say which data it used")
    single = len(specs) == 1 and "=" not in specs[0]
    for role, spec in map(with_role, [f"id={specs[0]}"] if single else specs):
        completed = reading if role == "retain" else reading.over(experiment, spec, experiment.data)
        yield own(spec, role, name=None if single else spec, trained_on=classes, **completed.keywords)


def _words(flags: Sequence[str]) -> dict[str, list[str]]:
    """The values of each flag, without dashes."""
    words: dict[str, list[str]] = {}
    for flag in flags:
        if flag.startswith("--"):
            words[flag[2:]] = []
        elif words:
            words[[*words][-1]].append(flag)
    return words


def _require_local(*specs: str) -> None:
    """Raise for data on another machine: a report downloads nothing."""
    for spec in specs:
        name = spec.partition("=")[2] or spec
        hub = name.startswith(PREFIX) and not Path(name.removeprefix(PREFIX)).exists()
        if "://" in name or hub:
            raise UserError(f"{name} is not on this machine, and a report downloads nothing")
