"""The JSON files of a run, read with their checksums; a file with values that no run writes is refused as a whole.

Versions without a checksum, and strangers who left it out, are why the values are looked at too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypedDict, get_origin, get_type_hints

from tracer.core.validation import fits
from tracer.runs.experiment import Experiment
from tracer.storage.checksum import verify_checksum

DESCRIPTION = "experiment.json"
RESULT = "result.json"
CLASS_NAMES = "class names"  # in the description: what --classes stood for, a list or a mapping
TEMPLATES = "templates"  # likewise: the prompts
FOREIGN = "sinks"  # the folder for what other packages write, such as links; nothing else looks into it
CONTENT = "content"  # in the description: hashes of what determines the run
CHOSEN = "chosen_by_fit.json"  # the weights that `tracer fit` chose, and its sentence on the test images
FETCHED = "fetched"  # likewise: checksums of files of the model that came from the network

Interval = tuple[float, float, float]


class Data(TypedDict, total=False):
    """The data of a run: counts, and hashes of their content."""

    name: str
    train: int
    held_out: int
    division: str
    fingerprint: str
    held_out_fingerprint: str


class Change(TypedDict):
    """The accuracy of two models on the same images, and its paired difference."""

    before: Interval
    after: Interval
    difference: Interval
    n: int


class Changes(TypedDict):
    """The change on the task, and on each retained data set."""

    task: Change
    retain: dict[str, Change]


class Retention(TypedDict, total=False):
    """How often both models give an image the same of ImageNet's names."""

    agreement: float
    kl: float
    n: int
    meaningful: bool
    interval: Interval


# Types of the entries of each file. Scores before and after may be of any form, and are checked where they are used.
SHAPES: dict[str, dict[str, Any]] = {
    DESCRIPTION: {  # what was asked for, and what a run began with
        "id": str,
        CONTENT: dict[str, str | None],
        "experiment": dict[str, Any],
        "start": str | None,
        FETCHED: dict[str, str],
        "steps": int,
        "data": Data,
        "classes": list[str],
        CLASS_NAMES: str | list[str] | dict[str, str] | None,
        TEMPLATES: list[str],
        "versions": dict[str, str],
        "git": str | None,
        "created": str,
        "machine": dict[str, str | int],
    },
    CHOSEN: {"weights": str, "sentence": str},
    RESULT: {"changes": Changes, "retention": Retention, "warnings": list[str]},
}


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file of a run, without its checksum. Entries may be missing: earlier versions wrote fewer.

    Raises ValueError if it is no object, does not match its checksum or has values of a wrong type; OSError.
    """
    value = verify_checksum(path.read_text(encoding="utf-8"))
    _require(value, SHAPES.get(path.name, {}))
    if path.name == DESCRIPTION:
        hints = get_type_hints(Experiment)  # other versions have other choices, but no other types
        choices = {name: str for name, hint in hints.items() if get_origin(hint) is Literal}
        _require(value.get("experiment", {}), hints | choices)
    return value


def _require(value: dict[str, Any], hints: dict[str, Any]) -> None:
    for name, entry in value.items():
        if name in hints and not fits(entry, hints[name]):
            raise ValueError(f"{name} cannot be {entry!r:.60}")
