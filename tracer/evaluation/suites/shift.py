"""A shift is one test set with its role; a suite is several of them, counted before any is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples
from tracer.evaluation.suites.projection import Projection

Role = Literal["id", "ood", "retain"]
ROLES: tuple[Role, ...] = get_args(Role)


class AbsentError(UserError):
    """A test set is not where it was looked for."""


@dataclass(frozen=True)
class Shift:
    """One test set: how to read it, what a model must score, and how that becomes the set's own classes.

    A model scores `classes` with `templates`; `project` turns these logits into those of the set's own
    classes, in which the labels of its examples count.
    """

    name: str
    role: Role
    load: Callable[[], Examples]
    classes: tuple[str, ...]
    project: Projection
    templates: tuple[str, ...] = ()
    size: int | None = None  # how many images the complete set has, if that is known
    short: str = ""  # head of its column in a table
    metric: str = "accuracy"  # the measure that the set's authors report
    derived: bool = False  # made from another test set: it has no part in the mean over shifts

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise unknown("role", self.role, ROLES)

    @property
    def head(self) -> str:
        return self.short or self.name

    @property
    def rule(self) -> str:
        """What is printed with every result."""
        return f"{self.name}: {self.project.description}"

    def shortfall(self, found: int) -> str:
        """What is wrong with a copy of `found` images; empty for a complete one."""
        if self.size is None or found == self.size:
            return ""
        return f"{self.name} has {found} images here, and the complete set {self.size}"


class Average(NamedTuple):
    """A named mean over some of the shifts."""

    name: str
    members: tuple[str, ...]


class Opened(NamedTuple):
    """A shift that has been read and counted; what is measured on a partial one is marked."""

    shift: Shift
    examples: Examples
    partial: bool = False


class Opening(NamedTuple):
    """All that could be opened of a suite, and the names of what is absent."""

    shifts: tuple[Opened, ...]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suite:
    """Test sets that are scored together."""

    name: str
    shifts: tuple[Shift, ...]
    extra: tuple[Average, ...] = ()  # averages beside the one over all shifts of role "ood"

    def __post_init__(self) -> None:
        names = [shift.name for shift in self.shifts]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UserError(f"the suite {self.name} has more than one shift called {min(twice)}")

    def __iter__(self) -> Iterator[Shift]:
        return iter(self.shifts)

    def prompted(self, templates: tuple[str, ...]) -> Suite:
        """The same test sets with other prompts."""
        return replace(self, shifts=tuple(replace(shift, templates=templates) for shift in self.shifts))

    def of(self, role: Role) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.shifts if shift.role == role)

    @property
    def averages(self) -> tuple[Average, ...]:
        """The mean over the declared role, and those of the others whose members are all here."""
        ood = tuple(shift.name for shift in self.of("ood") if not shift.derived)
        names = {shift.name for shift in self.shifts}
        extra = tuple(each for each in self.extra if names.issuperset(each.members) and each.members != ood)
        return (Average("OOD", ood), *extra) if len(ood) > 1 else extra

    def open(self, allow_partial: bool = False) -> Opening:
        """Read and count every test set before any is scored; refuse incomplete ones unless told not to."""
        opened, absent, problems = [], [], []
        for shift in self.shifts:
            try:
                examples = shift.load()
            except AbsentError as error:
                absent.append(shift.name)
                problems.append(str(error))
                continue
            short = shift.shortfall(len(examples))
            problems += [short] if short else []
            opened.append(Opened(shift, examples, partial=bool(short)))
        if problems and not (allow_partial and opened):
            advice = "--allow-partial scores what is there and marks every number it touches"
            raise UserError("\n".join((f"the suite {self.name} is not complete:", *problems, advice)))
        return Opening(tuple(opened), tuple(absent))
