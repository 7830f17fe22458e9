"""Runs on the same data form a group to compare; runs that differ only in their seed are averaged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from tracer.core.metrics import Interval, independent_mean, t_interval
from tracer.evaluation.verdict import Change
from tracer.report.measures import Key, changes, measured
from tracer.report.run_data import RunData, number
from tracer.report.scored import Moment

# Paths of data do not distinguish settings: fingerprints decide whether runs are comparable.
IGNORED = ("seed", "data", "held_out")


@dataclass(frozen=True, eq=False)
class Setting:
    """Runs that differ only in their seed."""

    label: str
    slot: int  # index of its colour, the same in every figure
    runs: tuple[RunData, ...]

    @property
    def finished(self) -> tuple[RunData, ...]:
        return tuple(run for run in self.runs if run.finished)

    @property
    def tested(self) -> bool:
        """Whether `tracer eval` has measured it on test data of the task."""
        return any(key.role == "id" for key in self.measures["after"])

    @cached_property
    def measures(self) -> dict[Moment, dict[Key, list[Interval]]]:
        """The values to average over seeds, one per run that has them."""
        collected: dict[Moment, dict[Key, list[Interval]]] = {"before": {}, "after": {}}
        for moment, measures in collected.items():
            for run in self.finished:
                for key, value in measured(run, moment).items():
                    measures.setdefault(key, []).append(value)
        return collected

    @cached_property
    def changes(self) -> dict[Key, Change]:
        """The change on every data set that was measured before and after; over several seeds their mean."""
        return changes(self.finished)

    def seeds(self, key: Key) -> int:
        """The number of runs that `estimate` averages."""
        return len(self.measures["after"].get(key, ()))

    def estimate(self, key: Key, moment: Moment = "after") -> Interval | None:
        """The mean over seeds with its interval; a single value keeps its own interval, over samples."""
        return _over_seeds(self.measures[moment].get(key, ()), moment)

    def means(self, keys: Sequence[Key], moment: Moment = "after") -> list[Interval]:
        """The mean accuracy over these data sets, of each run that has all of them."""
        runs = [measured(run, moment) for run in self.finished]
        complete = [values for values in runs if all(key in values for key in keys)]
        return [independent_mean([values[key] for key in keys]) for values in complete]

    def mean(self, keys: Sequence[Key], moment: Moment = "after") -> Interval | None:
        """The accuracy on one data set, or the mean over several."""
        return (
            self.estimate(keys[0], moment)
            if len(keys) == 1
            else _over_seeds(self.means(keys, moment), moment)
        )


def _over_seeds(values: Sequence[Interval], moment: Moment) -> Interval | None:
    """The mean with its interval; seeds that share a pretrained model measure one value, not several."""
    if len(values) == 1 or (moment == "before" and len({each.value for each in values}) == 1):
        return values[0]
    return t_interval(each.value for each in values) if values else None


@dataclass(frozen=True, eq=False)
class Group:
    """Settings on the same data, held-out data and classes."""

    name: str
    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[RunData, ...]:
        return tuple(run for setting in self.settings for run in setting.runs)

    @property
    def finished(self) -> list[Setting]:
        """Settings with a finished run."""
        return [setting for setting in self.settings if setting.finished]

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Every measure of any setting, the task first."""
        return tuple(dict.fromkeys(key for setting in self.settings for key in setting.measures["after"]))

    @property
    def task(self) -> Key | None:
        keys = (
            key for key in self.keys if key.metric == "accuracy" and not key.retained and key.role is None
        )
        return next(keys, None)

    @cached_property
    def retained(self) -> tuple[Key, ...]:
        """Retained data of training, or of `tracer eval`, else shifts, that every finished setting was scored on."""
        tables = [table for setting in self.finished for table in setting.measures.values()]
        both = [key for key in self.keys if all(key in table for table in tables)]
        kinds = (
            [key for key in both if key.retained],
            [key for key in both if key.role == "retain" and key.metric == "accuracy"],
            [key for key in both if key.shifted],
        )
        return tuple(next((kind for kind in kinds if kind), ()))

    @cached_property
    def shifts(self) -> tuple[Key, ...]:
        """Shifted test sets of every setting that `tracer eval` was run on."""
        evaluated = [s for s in self.settings if any(key.role is not None for key in s.measures["after"])]
        return tuple(k for k in self.keys if k.shifted and all(k in s.measures["after"] for s in evaluated))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The largest number of images that any run was scored on, for each test set of `tracer eval`."""
        sizes: dict[str, int] = {}
        for row in (row for run in self.runs for rows in run.scored.values() for row in rows):
            sizes[row.data] = max(sizes.get(row.data, 0), row.n)
        return sizes

    def partial(self, setting: Setting, keys: Sequence[Key], moment: Moment) -> bool:
        """Whether some of these test sets were incomplete, or had fewer images than for another setting."""
        names = {key.data for key in keys if key.role is not None}
        rows = (row for run in setting.finished for row in run.scored[moment] if row.data in names)
        return any(row.partial or row.n < self.sizes[row.data] for row in rows)

    @cached_property
    def remarks(self) -> dict[str, tuple[str, ...]]:
        """Notes on the runs, each once, with the names of its runs."""
        remarks: dict[str, list[str]] = {}
        for run in self.runs:
            # The headline of a single unfinished run already says so.
            for note in run.notes if len(self.runs) > 1 or run.finished else run.notes[1:]:
                remarks.setdefault(note, []).append(run.name)
        return {note: tuple(names) for note, names in remarks.items()}


def list_data(keys: Sequence[Key]) -> str:
    """Names of data sets in a sentence: "a", "a and b", "the 5 shifts"."""
    names = [key.data for key in keys]
    kind = "shifts" if any(key.shifted for key in keys) else "retained sets"
    return " and ".join(names) if len(names) < 3 else f"the {len(names)} {kind}"


def compare(runs: Sequence[RunData]) -> list[Group]:
    """Groups of comparable runs, the largest first; later groups have a note on why they are separate."""
    comparable: dict[str, list[RunData]] = {}
    for run in runs:
        comparable.setdefault(_data_identity(run), []).append(run)
    members = sorted(comparable.values(), key=len, reverse=True)
    groups, slot = [], 0
    for own in members:
        settings, notes = _settings(own, slot)
        slot += len(settings)
        separate = _difference(members[0][0], own[0]) if groups else ()
        name = own[0].data.get("name") or own[0].experiment.get("data") or "unknown data"
        groups.append(Group(name, settings, (*separate, *notes)))
    return groups


def _data_identity(run: RunData) -> str:
    """Equal for runs on the same data; runs without a fingerprint are comparable with no other."""
    fingerprint = run.data.get("fingerprint") or run.folder.resolve().as_posix()
    return json.dumps([fingerprint, run.data.get("held_out_fingerprint"), run.classes], default=str)


def _difference(first: RunData, other: RunData) -> tuple[str, ...]:
    """A note on why two runs are not compared."""
    reasons = []
    for field, what in (("fingerprint", "training data"), ("held_out_fingerprint", "held-out data")):
        if first.data.get(field) != other.data.get(field):
            reasons.append(f"other {what}")
    if first.classes != other.classes:
        reasons.append(f"other classes ({len(other.classes)} against {len(first.classes)})")
    reason = " and ".join(reasons) or "data without a fingerprint"
    return (f"Shown apart and averaged with nothing above, because it has {reason}.",)


def _settings(runs: Sequence[RunData], slot: int) -> tuple[tuple[Setting, ...], list[str]]:
    """Runs by setting, and notes on duplicates: the same experiment with the same seed counts once.

    Methods stand in the order given, settings of one method by the values that vary, which are part of their labels.
    """
    by_setting: dict[str, dict[Any, RunData]] = {}
    notes = []
    for run in runs:
        settled = {name: value for name, value in run.settled.items() if name not in IGNORED}
        seeds = by_setting.setdefault(json.dumps(settled, sort_keys=True, default=str), {})
        twin = seeds.get(run.seed)
        if twin is not None:
            notes.append(
                f"{twin.name} and {run.name} are the same experiment with the same seed: counted once."
            )
        if twin is None or (run.finished and not twin.finished):
            seeds[run.seed] = run
    by_title: dict[str, list[tuple[RunData, ...]]] = {}
    for seeds in by_setting.values():
        own = tuple(sorted(seeds.values(), key=lambda run: _sortable(run.seed)))
        by_title.setdefault(own[0].title, []).append(own)
    settings: list[Setting] = []
    for title, members in by_title.items():
        alike = [own[0] for own in members]
        names = varied(alike)
        for own in sorted(members, key=lambda own: [_sortable(own[0].settled.get(name)) for name in names]):
            values = [f"{name.replace('_', ' ')} {_differing(own[0], name, alike)}" for name in names]
            settings.append(Setting(" · ".join([title, *values]), slot + len(settings), own))
    return tuple(settings), notes


def _sortable(value: Any) -> tuple[int, float, str]:
    """A key that puts numbers first, in their order, then text in its own."""
    numeric = number(value)
    return (0, numeric, "") if numeric is not None else (1, 0.0, show(value))


def _differing(run: RunData, name: str, alike: Sequence[RunData]) -> str:
    """A value as text; of paths only the parts in which they differ."""
    own, others = show(run.settled.get(name)), {show(other.settled.get(name)) for other in alike}
    if not all("/" in value for value in others):
        return own
    paths, parts = [value.split("/") for value in others], own.split("/")
    first = _shared(paths)
    last = _shared([path[first:][::-1] for path in paths])
    return "/".join(parts[first : len(parts) - last]) or own


def _shared(paths: Sequence[Sequence[str]]) -> int:
    """The number of leading parts that all paths share."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))


def varied(runs: Iterable[RunData]) -> list[str]:
    """Names of the settings and options in which runs differ, except for seeds and paths of data."""
    settled = [run.settled for run in runs]
    names = dict.fromkeys(name for values in settled for name in values if name not in IGNORED)
    return [name for name in names if len({repr(values.get(name)) for values in settled}) > 1]


def show(value: Any) -> str:
    """A setting's value as readable text."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(show(part) for part in value) or "none"
    return "none" if value is None else str(value)
