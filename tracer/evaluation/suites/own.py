"""Any data that `tracer.data` reads as a test set, with a role."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec, match_names, read_names
from tracer.data.formats.hub import PREFIX
from tracer.data.formats.memory import PREFIX as MEMORY
from tracer.data.scan import with_level
from tracer.data.sources import embedded_name, load
from tracer.data.split import align_labels
from tracer.evaluation.suites.shift import ROLES, Shift
from tracer.measure.answers import Role
from tracer.models.prompts import templates
from tracer.models.task import Task

NO_TASK = Task()
GIVEN = "data"  # the name of a set that was given from Python: that of its content is a hash


def own(
    spec: str | Path,
    role: Role = "ood",
    *,
    name: str | None = None,
    classes: Spec | None = None,
    prompts: str | Sequence[str] | None = None,
    task: Task = NO_TASK,
    **options: Any,
) -> Shift:
    """The data `spec` as one shift.

    The classes are `classes` if given. Else they are those of `task`, of the model, if these contain all classes of the
    data (whatever their case and punctuation) and the role is not "retain"; else those of the data, an easier task if
    they are fewer. Data with splits give their test split. `prompts` default to those of the task for its classes, else
    to those of the data, else to "openai"; `options` go to `load`. The name is that of the file or folder, and "data"
    for data given from Python.
    """
    task = NO_TASK if role == "retain" else task
    options["classes"] = classes if classes in (None, "imagenet") else read_names(classes)
    examples = load(spec, **options)
    if examples.splits and "split" not in options:
        options["split"] = next((each for each in ("test", "val") if each in examples.splits), "train")
        examples = load(spec, **options)
    examples = with_level(examples)
    if not examples.labelled and not examples.captioned:
        raise UserError(f"{spec} has neither labels nor captions to score against")
    comparable = examples.labelled and classes is None
    if comparable and set(match_names(examples.classes, task.classes)) == set(examples.classes):
        examples = align_labels(examples, task.classes)
    asked_in = () if prompts is not None else task.templates_for(examples.classes) or examples.templates
    in_memory = str(spec).startswith(MEMORY) and "://" not in str(spec)
    return Shift(
        name=name or (GIVEN if in_memory else Path(str(spec)).name) or str(spec),
        role=role,
        load=lambda: examples,
        classes=examples.classes,
        templates=asked_in or templates(prompts or "openai"),
        source={
            "data": _place(str(spec)),
            "options": {name: value for name, value in options.items() if value is not None},
        },
    )


def _place(spec: str) -> str:
    """The spec from any folder: the whole path of a file, everything else as it is."""
    hub, path = (PREFIX, spec.removeprefix(PREFIX)) if spec.startswith(PREFIX) else ("", spec)
    local = "://" not in spec and not spec.startswith(MEMORY) and embedded_name(spec) is None
    return f"{hub}{Path(path).absolute()}" if local and (not hub or Path(path).exists()) else spec


def with_role(spec: str) -> tuple[Role, str]:
    """The role and the data of `role=data`."""
    role, equals, data = spec.partition("=")
    if not equals or not data:
        raise UserError(f"{spec!r} must be written role=data, with a role out of {', '.join(ROLES)}")
    if role not in ROLES:
        raise unknown("role", role, ROLES)
    return role, data
