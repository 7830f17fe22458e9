"""Anybody's own data as a test set: any data that `tracer.data` reads, with a role."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec
from tracer.data.options import canonical
from tracer.data.sources import load
from tracer.data.split import aligned
from tracer.evaluation.suites.projection import Everything
from tracer.evaluation.suites.shift import ROLES, Role, Shift, Suite
from tracer.models.prompts import templates


def own(
    spec: str | Path,
    role: Role = "ood",
    *,
    name: str | None = None,
    classes: Spec | None = None,
    prompts: str | Sequence[str] | None = None,
    size: int | None = None,
    trained_on: Sequence[str] = (),
    **options: Any,
) -> Shift:
    """The data that `spec` names as one shift.

    Labels count in `classes`. Without it they count in `trained_on`, the classes of a model, where these hold all
    that are found in the data; else in those found, which is an easier task if they are fewer. What is to be
    retained is another task and keeps its own. Of data with splits the test split is taken; `prompts` default to
    the data's own, else to "openai"; `options` are those of `load`.
    """
    examples = load(spec, classes=classes, **options)
    if examples.splits and "split" not in options:
        unseen = next((each for each in ("test", "val") if each in map(canonical, examples.splits)), "train")
        examples = load(spec, classes=classes, split=unseen, **options)
    if not examples.labelled and not examples.captioned:
        raise UserError(f"{spec} has neither labels nor captions, so nothing in it can be right or wrong")
    known = examples.labelled and set(examples.classes) <= set(trained_on)
    if known and classes is None and role != "retain":
        examples = aligned(examples, trained_on)
    sentences = (
        examples.templates if prompts is None and examples.templates else templates(prompts or "openai")
    )
    return Shift(
        name=name or Path(str(spec)).name or str(spec),
        role=role,
        load=lambda: examples,
        classes=examples.classes,
        project=Everything(len(examples.classes)),
        templates=sentences,
        size=size,
    )


def suite(*specs: str, **options: Any) -> Suite:
    """A suite of own data, each written `role=data`, for example `ood=photos/night`; options are those of `own`."""
    if not specs:
        raise UserError("a suite needs at least one test set, written role=data")
    return Suite("own", tuple(own(spec, role, name=spec, **options) for role, spec in map(with_role, specs)))


def with_role(spec: str) -> tuple[Role, str]:
    """A role and the data that have it, out of `role=data`."""
    role, equals, data = spec.partition("=")
    if not equals or not data:
        raise UserError(f"{spec!r} must be written role=data, with a role out of {', '.join(ROLES)}")
    if role not in ROLES:
        raise unknown("role", role, ROLES)
    return role, data
