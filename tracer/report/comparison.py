"""What may stand beside what: runs on the same data are compared, runs that differ by seed are averaged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from tracer.report.account import Account
from tracer.report.measures import Key, measured
from tracer.report.number import number
from tracer.report.scored import Moment
from tracer.report.spread import Estimate, over_seeds

# Where data and prompts lie does not make another setting: their fingerprints decide what is comparable.
PLACES = ("seed", "data", "held_out")


@dataclass(frozen=True, eq=False)
class Setting:
    """Runs that differ by nothing but their seed."""

    label: str
    slot: int  # its colour, the same in every figure
    runs: tuple[Account, ...]

    @property
    def finished(self) -> tuple[Account, ...]:
        return tuple(run for run in self.runs if run.finished)

    @cached_property
    def measures(self) -> dict[Moment, dict[Key, Estimate]]:
        return {"before": self._averaged("before"), "after": self._averaged("after")}

    def estimate(self, key: Key, moment: Moment = "after") -> Estimate | None:
        return self.measures[moment].get(key)

    def kept(self, keys: Sequence[Key], moment: Moment = "after") -> Estimate | None:
        """The mean accuracy over these data sets, each seed first for itself."""
        each = [measured(run, moment) for run in self.finished]
        means = [
            sum(values[key].value for key in keys) / len(keys)
            for values in each
            if keys and all(key in values for key in keys)
        ]
        return over_seeds(means) if means else None

    def _averaged(self, moment: Moment) -> dict[Key, Estimate]:
        each = [measured(run, moment) for run in self.finished]
        keys = dict.fromkeys(key for values in each for key in values)
        averaged = {}
        for key in keys:
            found = [values[key] for values in each if key in values]
            alike = len({estimate.value for estimate in found}) == 1
            # Seeds share one pretrained model: its values have no spread over them.
            alone = len(found) == 1 or (moment == "before" and alike)
            averaged[key] = found[0] if alone else over_seeds([estimate.value for estimate in found])
        return averaged


@dataclass(frozen=True, eq=False)
class Group:
    """Settings on the same data, held-out data and classes."""

    name: str
    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[Account, ...]:
        return tuple(run for setting in self.settings for run in setting.runs)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Every measure that any setting has, the task first."""
        return tuple(dict.fromkeys(key for setting in self.settings for key in setting.measures["after"]))

    @property
    def task(self) -> Key | None:
        return next(
            (key for key in self.keys if key.metric == "accuracy" and not key.kept and not key.suite), None
        )

    @cached_property
    def kept(self) -> tuple[Key, ...]:
        """Retained data that every finished setting was measured on, before and after; else the shifts."""
        done = [setting for setting in self.settings if setting.finished]
        both = [key for key in self.keys if all(key in s.measures[m] for s in done for m in s.measures)]
        return tuple(key for key in both if key.kept) or tuple(key for key in both if key.shifted)

    @cached_property
    def shifts(self) -> tuple[Key, ...]:
        """Shifted test sets that every setting was measured on of which `tracer eval` measured anything."""
        scored = [s for s in self.settings if any(key.suite for key in s.measures["after"])]
        return tuple(k for k in self.keys if k.shifted and all(k in s.measures["after"] for s in scored))

    @property
    def kept_name(self) -> str:
        """The retained data as in a sentence: a, a and b, the 5 retained sets."""
        return spoken(self.kept)

    @property
    def kept_mean(self) -> str:
        """What the accuracy over all of them is called."""
        return self.kept_name if len(self.kept) < 2 else f"the mean of {self.kept_name}"

    @cached_property
    def remarks(self) -> dict[str, tuple[str, ...]]:
        """What runs have to say, each sentence once, with the names of the runs that say it."""
        found: dict[str, list[str]] = {}
        for run in self.runs:
            # Of a single run the headline itself says that it is not finished.
            for note in run.notes if len(self.runs) > 1 or run.finished else run.notes[1:]:
                found.setdefault(note, []).append(run.name)
        return {note: tuple(names) for note, names in found.items()}


def spoken(keys: Sequence[Key]) -> str:
    """Data sets as in a sentence: a, a and b, the 5 shifts."""
    names = [key.data for key in keys]
    kind = "shifts" if any(key.suite for key in keys) else "retained sets"
    return " and ".join(names) if len(names) < 3 else f"the {len(names)} {kind}"


def compare(accounts: Sequence[Account]) -> list[Group]:
    """Groups of comparable runs, the largest first; each later group says why it stands apart."""
    comparable: dict[str, list[Account]] = {}
    for account in accounts:
        comparable.setdefault(_comparability(account), []).append(account)
    members = sorted(comparable.values(), key=len, reverse=True)
    groups, slot = [], 0
    for runs in members:
        settings, notes = _settings(runs, slot)
        slot += len(settings)
        apart = _difference(members[0][0], runs[0]) if groups else ()
        groups.append(Group(_name(runs), settings, (*apart, *notes)))
    return groups


def _comparability(account: Account) -> str:
    data = account.data
    known = data.get("fingerprint")
    parts = [known or account.folder.resolve().as_posix(), data.get("held_out_fingerprint"), account.classes]
    return json.dumps(parts, default=str)


def _name(runs: Sequence[Account]) -> str:
    return str(runs[0].data.get("name") or runs[0].experiment.get("data") or "unknown data")


def _difference(first: Account, other: Account) -> tuple[str, ...]:
    """Why nothing is averaged between two runs."""
    reasons = []
    for field, what in (("fingerprint", "training data"), ("held_out_fingerprint", "held-out data")):
        if first.data.get(field) != other.data.get(field):
            reasons.append(f"other {what}")
    if first.classes != other.classes:
        reasons.append(f"other classes ({len(other.classes)} against {len(first.classes)})")
    told = " and ".join(reasons) or "data that left no fingerprint"
    return (f"Shown apart and averaged with nothing above, because it has {told}.",)


def _settings(runs: Sequence[Account], slot: int) -> tuple[tuple[Setting, ...], list[str]]:
    """Runs by setting, in the order given; the same experiment met twice counts once."""
    by_setting: dict[str, dict[Any, Account]] = {}
    notes = []
    for run in runs:
        seeds = by_setting.setdefault(_identity(run), {})
        twin = seeds.get(run.seed)
        if twin is not None:
            notes.append(
                f"{twin.name} and {run.name} are the same experiment with the same seed: counted once."
            )
        if twin is None or (run.finished and not twin.finished):
            seeds[run.seed] = run
    members = _ordered([tuple(seeds.values()) for seeds in by_setting.values()])
    labels = _labels([seeds[0] for seeds in members])
    made = zip(labels, members, strict=True)
    return tuple(Setting(label, slot + i, seeds) for i, (label, seeds) in enumerate(made)), notes


def _ordered(members: list[tuple[Account, ...]]) -> list[tuple[Account, ...]]:
    """Methods as they came, the settings of one method by the values of what varies, seeds by number."""
    titles = list(dict.fromkeys(runs[0].title for runs in members))
    names = {title: varied(runs[0] for runs in members if runs[0].title == title) for title in titles}

    def rank(runs: tuple[Account, ...]) -> tuple[Any, ...]:
        title, settled = runs[0].title, runs[0].settled
        return titles.index(title), [_sortable(settled.get(name)) for name in names[title]]

    return [tuple(sorted(runs, key=lambda run: _sortable(run.seed))) for runs in sorted(members, key=rank)]


def _sortable(value: Any) -> tuple[int, float, str]:
    known = number(value)
    return (0, known, "") if known is not None else (1, 0.0, "")


def _identity(run: Account) -> str:
    settled = {name: value for name, value in run.settled.items() if name not in PLACES}
    return json.dumps(settled, sort_keys=True, default=str)


def _labels(runs: Sequence[Account]) -> list[str]:
    """The method's title and, where several settings share it, what tells them apart."""
    labels = []
    for run in runs:
        alike = [other for other in runs if other.title == run.title]
        apart = varied(alike)
        told = [f"{name.replace('_', ' ')} {_apart(run, name, alike)}" for name in apart]
        labels.append(" · ".join([run.title, *told]))
    return labels


def _apart(run: Account, name: str, alike: Sequence[Account]) -> str:
    """A value as far as it differs: of paths, the parts between those that all have in common."""
    own, others = show(run.settled.get(name)), {show(other.settled.get(name)) for other in alike}
    if not all("/" in value for value in others):
        return own
    paths, parts = [value.split("/") for value in others], own.split("/")
    first = _shared(paths)
    last = _shared([path[first:][::-1] for path in paths])
    return "/".join(parts[first : len(parts) - last]) or own


def _shared(paths: Sequence[Sequence[str]]) -> int:
    """How many parts from the first on are the same in all."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))


def varied(runs: Iterable[Account]) -> list[str]:
    """Names of the settings and options in which runs differ, places and seeds apart."""
    settled = [run.settled for run in runs]
    names = dict.fromkeys(name for values in settled for name in values if name not in PLACES)
    return [name for name in names if len({repr(values.get(name)) for values in settled}) > 1]


def show(value: Any) -> str:
    """A setting's value as a person would write it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(show(part) for part in value) or "none"
    return "none" if value is None else str(value)
