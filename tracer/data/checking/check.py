"""Check that a data set can be trained on."""

from __future__ import annotations

import numpy as np

from tracer.core.errors import UserError
from tracer.data.classes import visible
from tracer.data.examples import Examples


def validate(examples: Examples) -> None:
    """Raise UserError if the data cannot be trained on. Images are not read."""
    name, classes = examples.name, examples.classes
    if not len(examples):
        raise UserError(f"there are no images in {name}")
    if not examples.labelled and not examples.captioned:
        raise _unusable(examples, "has neither classes nor captions: put its images in one folder a class")
    if examples.captioned:
        empty = [not texts for texts in examples.captions]
        _refuse(examples, empty, "an empty caption", "--caption-column none takes class names instead")
    if not examples.labelled:
        return
    if len(classes) == 1 and not examples.captioned:
        raise _unusable(examples, f"has one class only, {classes[0]!r}: there is nothing to tell apart")
    _refuse(examples, examples.labels == -1, "no label", "--label-column none takes captions alone")
    outside = (examples.labels < 0) | (examples.labels >= len(classes))
    _refuse(examples, outside, f"a label outside the {len(classes)} classes", "labels count from 0")
    nameless = [i for i, each in enumerate(classes) if not visible(each).strip()]
    if nameless:
        raise UserError(f"class {nameless[0]} of {name} has an empty name")
    foreign = [each for each in classes if each.encode(errors="ignore").decode() != each]
    if foreign:  # it would stand in prompts
        raise UserError(
            f"the class {foreign[0]!r} of {name} is not UTF-8: rename its folder, or name it with --classes FILE"
        )


def _unusable(examples: Examples, problem: str) -> UserError:
    """The error for data without anything to learn, with what is strange about them, which may be the cause."""
    return UserError("; ".join((f"{examples.name} {problem}", *examples.warnings)))


def _refuse(examples: Examples, wrong: np.ndarray | list[bool], what: str, advice: str) -> None:
    """Raise UserError if any example is `wrong`, with their number and the first one."""
    indices = np.flatnonzero(wrong)
    if len(indices):
        count = f"{len(indices)} of {len(examples)} images in {examples.name} have {what}"
        raise UserError(f"{count}, for example {examples.ids[indices[0]]}: {advice}")
