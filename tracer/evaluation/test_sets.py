"""What `tracer eval` measures on: own data with roles, or a suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tracer.core.command_line import flag, flag_values
from tracer.core.errors import UserError, unknown
from tracer.data.sources import AS_FOUND, Reading
from tracer.evaluation.suites import EMBEDDED, SUITES
from tracer.evaluation.suites.corruptions import corrupt as corrupted
from tracer.evaluation.suites.emojishift import suite_from_spec
from tracer.evaluation.suites.own import own, with_role
from tracer.evaluation.suites.shift import Opened, Role, Suite
from tracer.evaluation.target import Target
from tracer.models.prompts import templates as prompts
from tracer.parallel import World


@dataclass(frozen=True, kw_only=True)
class TestSets:
    """What to measure on: own data with roles, or a suite by name."""

    data: tuple[str, ...] = ()
    """Test sets; several are given as role=data with a role of id, ood or retain."""
    suite: str | None = None
    """imagenet, iwildcam, fmow or emojishift, instead of --data; emojishift:STYLE:FOLD for another than the run's."""
    root: Path | None = None
    """The folder of the suite's data sets."""
    at: tuple[str, ...] = ()
    """Sets of imagenet in other places, each NAME=PLACE: a folder, a table, shards or hf:NAME, where NAME is val, v2,
    r, a, sketch or objectnet."""
    corrupt: tuple[str, ...] = ()
    """Also evaluate the id sets under corruptions, each KIND:SEVERITY, KIND (severities 1, 3, 5) or all:
    gaussian_noise, shot_noise, gaussian_blur, defocus_blur, jpeg, brightness, contrast, pixelate."""
    templates: str | None = None
    """Prompt templates: openai, simple, name, or a file."""
    reading: Reading = AS_FOUND
    allow_partial: bool = False
    """Score incomplete data sets too, and mark their scores."""

    @property
    def flags(self) -> list[str]:
        """The same as flags of `tracer eval`, which are written beside the scores."""
        values = {}
        for field in fields(TestSets):
            value = getattr(self, field.name)
            values |= value.flags if isinstance(value, Reading) else {field.name: value}
        return [word for name, value in values.items() if value for word in flag(name, value)]

    @classmethod
    def from_flags(cls, flags: Sequence[str]) -> TestSets:
        """What these flags of `tracer eval` mean; the inverse of `flags`."""
        values = flag_values(flags)
        single = {name: words[0] for name, words in values.items() if words}
        return cls(
            **{name: tuple(values.get(name, ())) for name in ("data", "at", "corrupt")},
            suite=single.get("suite"),
            root=Path(single["root"]) if "root" in single else None,
            templates=single.get("templates"),
            reading=Reading.from_flags(single),
            allow_partial="allow_partial" in values,
        )

    def open(self, target: Target, world: World) -> tuple[Suite, tuple[Opened, ...]]:
        """The test sets as they are scored for this target, read and counted."""
        suite = world.all_or_none(lambda: self.suite_for(target))
        return suite, world.all_or_none(lambda: suite.open(self.allow_partial))

    def reading_of(self, target: Target, role: Role, spec: str) -> Reading:
        """How `spec` is read: as asked for, and what is left open as the run reads its own data."""
        if role == "retain":
            return self.reading
        if target.run is None:
            return replace(self.reading, white_level=self.reading.white_level or target.white_level)
        return self.reading.over(target.run.experiment, spec, target.run.experiment.data)

    @property
    def roles(self) -> list[tuple[Role, str]]:
        """Each data set with its role; a single one without a role is in-distribution data."""
        if len(self.data) == 1 and "=" not in self.data[0]:
            return [("id", self.data[0])]
        return [*map(with_role, self.data)]

    def suite_for(self, target: Target) -> Suite:
        """The test sets with the classes and prompts by which this target is scored; nothing is read yet."""
        if bool(self.data) == (self.suite is not None):
            raise UserError("give what to measure on: either --data or --suite")
        suite = self._own(target) if self.suite is None else self._named_suite(self.suite, target)
        return corrupted(suite, *self.corrupt)

    def _own(self, target: Target) -> Suite:
        shifts = (
            own(
                spec,
                role,
                name=None if self.data == (spec,) else spec,
                task=target.task,
                prompts=self.templates,
                **self.reading_of(target, role, spec).keywords,
            )
            for role, spec in self.roles
        )
        return Suite("own", tuple(shifts))

    def _named_suite(self, name: str, target: Target) -> Suite:
        if self.reading.flags:
            raise UserError(f"--{next(iter(self.reading.flags))} means nothing for a suite: leave it out")
        kind, _, which = name.partition(":")
        if kind not in SUITES:
            raise unknown("suite", kind, SUITES)
        if which and kind not in EMBEDDED:
            raise UserError(f"--suite {name}: {kind} is one suite, leave out {which!r}")
        if kind not in EMBEDDED and self.root is None and not self.at:
            raise UserError(f"--suite {name} needs --root, the folder that holds its data sets")
        if kind != "imagenet" and self.at:
            raise UserError(f"--at means nothing for {kind}: it says where sets of imagenet lie")
        trained = target.run.experiment.data if target.run else None
        elsewhere = {"at": self.at} if self.at else {}
        suite = suite_from_spec(name, trained) if kind in EMBEDDED else SUITES[kind](self.root, **elsewhere)
        return suite.prompted(prompts(self.templates)) if self.templates else suite
