"""What `tracer eval` measures on: own data with roles, or a suite; and where images of a test set are found again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tracer.core.command_line import flag
from tracer.core.errors import UserError, unknown
from tracer.core.validation import fits
from tracer.data.examples import Examples
from tracer.data.options import Options
from tracer.data.place import leaves_machine
from tracer.data.sources import AS_FOUND, Reading, load
from tracer.evaluation.suites import EMBEDDED, SUITES
from tracer.evaluation.suites.corruptions import KINDS, corrupt, corrupted
from tracer.evaluation.suites.emojishift import suite_from_spec
from tracer.evaluation.suites.own import own, with_role
from tracer.evaluation.suites.shift import Opened, Suite
from tracer.evaluation.target import Target
from tracer.measure.answers import Answers, Role
from tracer.models.prompts import templates as prompts
from tracer.parallel import World

COMMAND = (
    "templates",
    "allow_partial",
    *(each.name for each in fields(Reading)),
)  # flags beside the test sets


@dataclass(frozen=True, kw_only=True)
class TestSets:
    """What to measure on: own data with roles, or a suite by name."""

    data: tuple[str, ...] = ()
    """Test sets; several are given as role=data with a role of id, ood or retain."""
    suite: str | None = None
    """imagenet or emojishift, instead of --data; emojishift:STYLE:FOLD for another than the run's."""
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

    def open(self, target: Target, world: World) -> tuple[Suite, tuple[Opened, ...]]:
        """The test sets as they are scored for this target, read and counted."""
        suite = world.all_or_none(lambda: self.suite_for(target))
        return suite, world.all_or_none(lambda: suite.open(self.allow_partial))

    @property
    def command(self) -> dict[str, Any]:
        """What a command that repeats this needs beside the sources of the test sets."""
        flags = {name.replace("-", "_"): value for name, value in self.reading.flags.items()}
        more = {"templates": self.templates, "allow_partial": self.allow_partial or None}
        return flags | {name: value for name, value in more.items() if value is not None}

    def options_of(self, target: Target, role: Role, spec: str) -> dict[str, Any]:
        """How `spec` is read: as asked for, and what is left open as the run reads its own data.

        The class names of the run are those that it began with, whatever their file holds by now.
        """
        return self._reading_of(target, role, spec).keywords | self._named(target, role, spec)

    def inherited(self, target: Target, role: Role, spec: str) -> list[str]:
        """What is read as the run reads its own data, as flags and words."""
        flags = self._reading_of(target, role, spec).flags
        words = {name: f"--{name} {value}" for name, value in flags.items() if name not in self.reading.flags}
        if self._named(target, role, spec):
            words["classes"] = "with the class names of the run"
        return [*words.values()]

    def _reading_of(self, target: Target, role: Role, spec: str) -> Reading:
        if role == "retain":
            return self.reading
        if target.run is None:
            return replace(self.reading, white_level=self.reading.white_level or target.white_level)
        return self.reading.over(target.run.experiment, spec, target.run.experiment.data)

    def _named(self, target: Target, role: Role, spec: str) -> dict[str, Any]:
        """The class names, if they are those of the run."""
        named = self._reading_of(target, role, spec).classes is not None and self.reading.classes is None
        return {"classes": target.run.class_names} if named and target.run is not None else {}

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
        return corrupt(suite, *self.corrupt)

    def _own(self, target: Target) -> Suite:
        shifts = (
            own(
                spec,
                role,
                name=None if self.data == (spec,) else spec,
                task=target.task,
                prompts=self.templates,
                **self.options_of(target, role, spec),
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
        root = None if self.root is None else str(self.root.absolute())
        suite = _suite(name, root, self.at, trained)
        source = {"suite": name, "root": root, "at": list(self.at), "trained": trained}
        shifts = tuple(replace(shift, source={**source, "set": shift.name}) for shift in suite)
        suite = replace(suite, shifts=shifts)
        return suite.prompted(prompts(self.templates)) if self.templates else suite


def _suite(name: str, root: str | None, at: tuple[str, ...], trained: str | None) -> Suite:
    if name.partition(":")[0] in EMBEDDED:
        return suite_from_spec(name, trained)
    return SUITES[name](root, **({"at": at} if at else {}))


def local(source: Mapping[str, Any]) -> bool:
    """Whether nothing has to come from another machine to read a test set again."""
    at = source.get("at")
    places = [source.get("data"), source.get("root"), *(at if isinstance(at, list) else [])]
    return not any(leaves_machine(place) for place in places if isinstance(place, str))


def examples_of(source: Mapping[str, Any]) -> Examples:
    """The images of a test set that was scored before, from where they lay then; a UserError if that does not say."""
    options, at = source.get("options", {}), source.get("at") or []
    names = {each.name for each in fields(Options)}
    plain = fits(options, dict[str, float | str | list[str] | dict[str, str]]) and options.keys() <= names
    if plain and fits(options.get("classes"), str):
        plain = options["classes"] == "imagenet"  # a path would be read for another purpose than pictures
    if plain and fits(source.get("data"), str):
        examples = load(source["data"], **options)
    elif (
        fits(source.get("suite"), str) and fits(at, list[str]) and source["suite"].partition(":")[0] in SUITES
    ):
        suite = _suite(source["suite"], source.get("root"), tuple(at), source.get("trained"))
        loads = [shift.load for shift in suite if shift.name == source.get("set")]
        if not loads:
            raise UserError(f"{source.get('set')} is none of the suite {source['suite']}")
        examples = loads[0]()
    else:
        raise UserError("what was kept does not say where the images are")
    kind, severity = source.get("corrupt") or ("", 0)
    return corrupted(examples, kind, severity) if kind in KINDS else examples


def evaluations(answers: Iterable[Answers]) -> dict[tuple[str, ...], list[str]]:
    """The flags of `tracer eval` that measure these answers again, each with the names of its test sets."""
    groups: dict[tuple[str, ...], dict[str, list[str]]] = {}
    names: dict[tuple[str, ...], list[str]] = {}
    for each in answers:
        source = each.source
        if not {"data", "suite"} & source.keys():
            continue
        given = source.get("command")
        flags = given if isinstance(given, dict) else {}
        flags = {name: value for name, value in flags.items() if name in COMMAND}
        flags |= {name: source[name] for name in ("suite", "root", "at") if source.get(name)}
        rest = tuple(word for name, value in flags.items() for word in flag(name, _words(value)))
        lists = groups.setdefault(rest, {"data": [], "corrupt": []})
        corruption = source.get("corrupt")
        if isinstance(corruption, list):
            lists["corrupt"].append(":".join(map(str, corruption)))
        elif "data" in source:
            lists["data"].append(f"{each.role}={source['data']}")
        names.setdefault(rest, []).append(each.name)
    return {
        tuple(
            word
            for name, values in lists.items()
            if values
            for word in flag(name, tuple(dict.fromkeys(values)))
        )
        + rest: names[rest]
        for rest, lists in groups.items()
    }


def _words(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
