"""The numbers of a result, whatever it holds: each leaf of `before` and `after` under a readable name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tracer.core.metrics import METRICS
from tracer.report.account import Account
from tracer.report.number import number
from tracer.report.scored import Moment
from tracer.report.spread import Estimate, wilson

Better = Literal["higher", "lower"]

ORDER = (
    "accuracy",
    "retain",
    "ece",
    "calibration",
    "retention",
    "nll",
    "brier",
)  # what comes first in a table
NAMES = {"accuracy": "accuracy", "ece": "ECE", "nll": "NLL", "brier": "Brier score", "macro_f1": "macro F1"}
NAMES |= {"adaptive_ece": "adaptive ECE", "ece_batched": "batched ECE", "top5": "top-5 accuracy"}
SUITE = "suite"  # where a test set's measures lie: suite, role, name, metric
ROLES = {"retain": "kept: ", "calibration": "kept: "}
# Measures of the result against the pretrained model, which have no "before": (label, better, percent).
AGAINST: dict[tuple[str, ...], tuple[str, Better, bool]] = {
    ("retention", "agreement"): ("agrees with pretrained", "higher", True),
    ("retention", "kl"): ("KL from pretrained", "lower", False),
}


@dataclass(frozen=True, order=True)
class Key:
    """Where a number lies in a result, e.g. ("retain", "digits")."""

    path: tuple[str, ...]

    @property
    def metric(self) -> str | None:
        known = [part for part in self.path if part in METRICS]
        if known:
            return known[-1]
        return "accuracy" if self.path[0] == "retain" and len(self.path) == 2 else None

    @property
    def kept(self) -> bool:
        """Whether it is the accuracy on data that should survive."""
        return self.path[0] == "retain" and self.metric == "accuracy"

    @property
    def suite(self) -> bool:
        """Whether `tracer eval` measured it on a test set."""
        return self.path[0] == SUITE

    @property
    def shifted(self) -> bool:
        """Whether it is the accuracy on a shifted test set."""
        return self.path[:2] == (SUITE, "ood") and self.path[3:] == ("accuracy",)

    @property
    def data(self) -> str:
        """The data set that it was measured on, where it is named."""
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


def measured(account: Account, moment: Moment) -> dict[Key, Estimate]:
    """Every number of a result; intervals as written, else Wilson's for the task, whose count is known."""
    result = account.result or {}
    found = result.get(moment)
    values = dict(_leaves(found, ())) if isinstance(found, dict) else {}
    if moment == "after":
        values |= dict(_leaves(result.get("retention"), ("retention",)))
    for row in account.scored[moment]:
        values[Key((SUITE, row["role"], row["shift"], row["metric"]))] = _estimate(row)
    task, count = Key(("accuracy",)), account.data.get("held_out")
    if task in values and values[task].low is None and isinstance(count, int):
        values[task] = wilson(values[task].value, count)
    return dict(sorted(values.items(), key=lambda item: _rank(item[0])))


def _rank(key: Key) -> tuple[int, int]:
    first = ORDER.index(key.path[0]) if key.path[0] in ORDER else len(ORDER)
    return first, len(key.path)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Key, Estimate]]:
    if isinstance(value, list):
        yield from _rows(value, path)
    elif isinstance(value, dict) and number(value.get("value")) is not None:
        yield Key(path), _estimate(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    elif (single := number(value)) is not None and path:
        yield Key(path), Estimate(single)


def _rows(rows: list[Any], path: tuple[str, ...]) -> Iterator[tuple[Key, Estimate]]:
    """A table of rows, each with a value and the names of what it is."""
    for row in rows:
        if isinstance(row, dict) and number(row.get("value")) is not None:
            named = [
                str(row[name]) for name in ("shift", "data", "name", "metric") if row.get(name) is not None
            ]
            if named:
                yield Key((*path, *named)), _estimate(row)


def _estimate(row: dict[str, Any]) -> Estimate:
    value = number(row["value"])
    assert value is not None
    low, high = number(row.get("low")), number(row.get("high"))
    return Estimate(value, low, high) if low is not None and high is not None else Estimate(value)
