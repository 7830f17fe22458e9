"""A shift is a test set with a role; a suite is several of them, counted before any is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.measure.answers import Key, Role

ROLES: tuple[Role, ...] = ("id", "ood", "retain")  # of test sets
Groups = tuple[tuple[int, ...], ...]  # columns of logits, for each class


class AbsentError(UserError):
    """A test set is missing."""


@dataclass(frozen=True)
class Shift:
    """One test set.

    A model computes logits of `classes` with `templates`. If the set has classes of its own, these are `groups` of
    columns of the logits: the logit of each is the largest of its group, and the labels of the examples count in them.
    """

    name: str
    role: Role
    load: Callable[[], Examples]
    classes: tuple[str, ...]
    templates: tuple[str, ...] = ()
    size: int | None = None  # number of images of the complete set, if known
    short: str = ""  # name in the header of a table
    groups: Groups = ()
    original: Callable[[], Examples] | None = None  # those that its images are derived from
    source: Mapping[str, Any] = field(
        default_factory=dict
    )  # where the images are found again: see `test_sets`

    @property
    def derived(self) -> bool:
        """Whether it is derived from another test set, so that it is not part of the mean over shifts."""
        return self.original is not None

    @property
    def head(self) -> str:
        return self.short or self.name

    @property
    def rule(self) -> str:
        """Name and projection, as printed with every result."""
        groups, columns, classes = len(self.groups), sum(map(len, self.groups)), len(self.classes)
        if not groups:
            rule = f"all {classes} classes" if classes else "captions, no classes"
        elif groups == columns:
            rule = f"logits restricted to {columns} of {classes} classes"
        else:
            rule = f"{groups} classes, each the largest logit of its own among {columns} of {classes} columns"
        return f"{self.name}: {rule}"

    def project(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n j"]:
        """Logits over the set's own classes, from those of `classes`."""
        if logits.ndim != 2 or logits.shape[1] != len(self.classes):
            raise ValueError(
                f"logits of {len(self.classes)} classes needed, not of shape {list(logits.shape)}"
            )
        if not self.groups:
            return logits
        width = max(map(len, self.groups))
        padded = [(*group, *group[:1] * (width - len(group))) for group in self.groups]
        return logits[:, torch.tensor(padded, device=logits.device)].amax(dim=2)


class Average(NamedTuple):
    """A named mean over some of the shifts."""

    name: str
    members: tuple[str, ...]


class Opened(NamedTuple):
    """A shift with its examples; `partial` if images are missing."""

    shift: Shift
    examples: Examples
    partial: bool

    @property
    def key(self) -> Key:
        """What is asked. Images that were not read before are read once, to be hashed."""
        shift, original = self.shift, self.shift.original
        rule = [shift.groups, shift.short if shift.derived else ""]
        images = None if original is None else original()
        return Key.of(self.examples, shift.classes, shift.templates, rule, images=images)


@dataclass(frozen=True)
class Suite:
    """A named collection of test sets."""

    name: str
    shifts: tuple[Shift, ...]
    extra: tuple[Average, ...] = ()  # in addition to the mean over the role "ood"

    def __post_init__(self) -> None:
        names = [shift.name for shift in self.shifts]
        duplicates = {name for name in names if names.count(name) > 1}
        if duplicates:
            raise UserError(f"the suite {self.name} has more than one shift called {min(duplicates)}")

    def __iter__(self) -> Iterator[Shift]:
        return iter(self.shifts)

    def prompted(self, templates: tuple[str, ...]) -> Suite:
        """The suite with other prompts."""
        return replace(self, shifts=tuple(replace(shift, templates=templates) for shift in self.shifts))

    def of(self, role: Role) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.shifts if shift.role == role)

    @property
    def averages(self) -> tuple[Average, ...]:
        """The mean over the role "ood", and the extra ones whose members are all in the suite."""
        ood = tuple(shift.name for shift in self.of("ood") if not shift.derived)
        names = {shift.name for shift in self.shifts}
        extra = tuple(each for each in self.extra if names.issuperset(each.members) and each.members != ood)
        return (Average("OOD", ood), *extra) if len(ood) > 1 else extra

    def open(self, allow_partial: bool = False) -> tuple[Opened, ...]:
        """Read and count every test set; an error if one is missing or incomplete, unless `allow_partial`."""
        opened, problems = [], []
        for shift in self.shifts:
            try:
                examples = shift.load()
            except AbsentError as error:
                problems.append(str(error))
                continue
            partial = shift.size is not None and len(examples) != shift.size
            if partial:
                here = f"{len(examples)} images here"
                problems.append(f"{shift.name} has {here}, and the complete set {shift.size}")
            opened.append(Opened(shift, examples, partial))
        if problems and not (allow_partial and opened):
            advice = "--allow-partial scores what is there and marks every number it touches"
            raise UserError("\n".join((f"the suite {self.name} is not complete:", *problems, advice)))
        return tuple(opened)
