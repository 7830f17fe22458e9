"""All numbers of a run's result: each leaf of `before` and `after` with a readable label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tracer.core.metrics import METRICS, Interval, wilson_interval
from tracer.report.number import count, inner, number
from tracer.report.run_data import RunData
from tracer.report.scored import Moment

Better = Literal["higher", "lower"]

ORDER = ("accuracy", "retain", "ece", "calibration", "retention", "nll", "brier")  # of columns in a table
NAMES = {"accuracy": "accuracy", "ece": "ECE", "nll": "NLL", "brier": "Brier score", "macro_f1": "macro F1"}
NAMES |= {"adaptive_ece": "adaptive ECE", "ece_batched": "batched ECE", "top5": "top-5 accuracy"}
SUITE = "suite"  # the first part of a test set's key: suite, role, name, metric
ROLES = {"retain": "kept: ", "calibration": "kept: "}
# Measures that compare the result with the pretrained model and have no "before": (label, better, percent).
AGAINST: dict[tuple[str, ...], tuple[str, Better, bool]] = {
    ("retention", "agreement"): ("agrees with pretrained", "higher", True),
    ("retention", "kl"): ("KL from pretrained", "lower", False),
}


@dataclass(frozen=True, order=True)
class Key:
    """The path of a number in a result, e.g. ("retain", "digits")."""

    path: tuple[str, ...]

    @property
    def metric(self) -> str | None:
        known = [part for part in self.path if part in METRICS]
        if known:
            return known[-1]
        return "accuracy" if self.path[0] == "retain" and len(self.path) == 2 else None

    @property
    def retained(self) -> bool:
        """Whether it is the accuracy on retained data."""
        return self.path[0] == "retain" and self.metric == "accuracy"

    @property
    def suite(self) -> bool:
        """Whether it is from `tracer eval` on a test set."""
        return self.path[0] == SUITE

    @property
    def shifted(self) -> bool:
        """Whether it is the accuracy on a shifted test set."""
        return self.path[:2] == (SUITE, "ood") and self.path[3:] == ("accuracy",)

    @property
    def data(self) -> str:
        """The name of the data set, where the path has one."""
        return self.path[2 if self.suite else 1]

    @property
    def better(self) -> Better | None:
        if self.path in AGAINST:
            return AGAINST[self.path][1]
        return METRICS[self.metric].better if self.metric else None

    @property
    def percent(self) -> bool:
        if self.path in AGAINST:
            return AGAINST[self.path][2]
        return METRICS[self.metric].percent if self.metric else False

    @property
    def label(self) -> str:
        if self.path == ("accuracy",):
            return "task"
        if self.path in AGAINST:
            return AGAINST[self.path][0]
        inner = [part for part in self.path[2 if self.suite else 0 :] if part != "accuracy"]
        role = ""
        if inner[0] in ROLES and len(inner) > 1:
            role, inner = ROLES[inner[0]], inner[1:]
        return role + " · ".join(NAMES.get(part, part.replace("_", " ")) for part in inner)


def measured(run: RunData, moment: Moment) -> dict[Key, Interval]:
    """Every number of a result with its interval in the file; accuracies without one get Wilson's if their number of
    images is known.
    """
    result = run.result or {}
    scores = result.get(moment)
    values = dict(_leaves(scores, ())) if isinstance(scores, dict) else {}
    if moment == "after" and inner(result, "retention", "meaningful") is not False:
        for name in ("agreement", "kl"):
            values |= dict(_leaves(inner(result, "retention", name), ("retention", name)))
    intervals = inner(result, "intervals", moment)
    for name, ends in intervals.items() if isinstance(intervals, dict) else ():
        if Key((name,)) in values and (interval := _ends(ends)):
            values[Key((name,))] = interval
    for row in run.scored[moment]:
        values[Key((SUITE, row["role"], row["shift"], row["metric"]))] = _interval(row)
    for key, value in values.items():
        if not value.known and (key.metric == "accuracy" or key.path == ("retention", "agreement")):
            values[key] = wilson_interval(value.value, image_count(run, key))
    return dict(sorted(values.items(), key=lambda item: _rank(item[0])))


def image_count(run: RunData, key: Key) -> int:
    """The number of images behind a measure; 0 where it is not known."""
    result = run.result or {}
    if key.suite:
        rows = (row for row in run.scored["after"] if (row["role"], row["shift"]) == key.path[1:3])
        return next((count(row.get("n")) or 0 for row in rows), 0)
    if key.path[0] in ("retain", "calibration"):
        return count(inner(result, "changes", "retain", key.data, "n")) or 0
    if key.path[0] == "retention":
        return count(inner(result, "retention", "n")) or 0
    return count(run.data.get("held_out")) or 0 if len(key.path) == 1 else 0


def _rank(key: Key) -> tuple[int, int]:
    first = ORDER.index(key.path[0]) if key.path[0] in ORDER else len(ORDER)
    return first, len(key.path)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Key, Interval]]:
    if isinstance(value, list):
        yield from _rows(value, path)
    elif isinstance(value, dict) and number(value.get("value")) is not None:
        yield Key(path), _interval(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    elif (single := number(value)) is not None and path:
        yield Key(path), Interval.unknown(single)


def _rows(rows: list[Any], path: tuple[str, ...]) -> Iterator[tuple[Key, Interval]]:
    """The values of rows that name what was measured."""
    for row in rows:
        if isinstance(row, dict) and number(row.get("value")) is not None:
            names = [
                str(row[name]) for name in ("shift", "data", "name", "metric") if row.get(name) is not None
            ]
            if names:
                yield Key((*path, *names)), _interval(row)


def _ends(value: Any) -> Interval | None:
    """An interval written as [low, value, high]; None for anything else."""
    ends = [number(each) for each in value] if isinstance(value, list) else []
    return Interval(*ends) if len(ends) == 3 and None not in ends else None  # pyright: ignore[reportArgumentType]


def _interval(row: dict[str, Any]) -> Interval:
    value = number(row["value"])
    assert value is not None
    low, high = number(row.get("low")), number(row.get("high"))
    return Interval.unknown(value) if low is None or high is None else Interval(low, value, high)
