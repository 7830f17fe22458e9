"""The numbers of a run: each leaf of `before` and `after` in its result with a readable label, and their changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tracer.core.metrics import METRICS, Interval, independent_mean, t_interval, wilson_interval
from tracer.core.validation import fits
from tracer.evaluation.verdict import INTERVALS, Change, verdict
from tracer.report.paired import paired_sets
from tracer.report.run_data import RunData, inner, number
from tracer.report.scored import Moment

Better = Literal["higher", "lower"]

ORDER = ("accuracy", "retain", "ece", "calibration", "retention", "nll", "brier")  # of columns in a table
NAMES = {"accuracy": "accuracy", "ece": "ECE", "nll": "NLL", "brier": "Brier score", "macro_f1": "macro F1"}
NAMES |= {"adaptive_ece": "adaptive ECE", "ece_batched": "batched ECE", "top5": "top-5 accuracy"}
SUITE = "suite"  # the first part of a test set's key: suite, role, name, metric
KEPT = ("retain", "calibration")  # the first part of the key of a measure of retained data
# Measures that compare the result with the pretrained model and have no "before": (label, better, percent).
AGAINST: dict[tuple[str, ...], tuple[str, Better, bool]] = {
    ("retention", "agreement"): ("agrees with pretrained", "higher", True),
    ("retention", "kl"): ("KL from pretrained", "lower", False),
}


class Key(NamedTuple):
    """What a number of a result measures; its path is that in the file, e.g. ("retain", "digits")."""

    path: tuple[str, ...]
    label: str
    metric: str | None = None  # one of METRICS
    better: Better | None = None
    percent: bool = False
    role: str | None = None  # of a test set of `tracer eval`
    data: str = ""  # name of the data set, if the path has one

    @classmethod
    def of(cls, *path: str) -> Key:
        """The measure at this path; that of a test set is suite, role, name and metric."""
        if path in AGAINST:
            label, better, percent = AGAINST[path]
            return cls(path, label, better=better, percent=percent)
        suite = path[0] == SUITE and len(path) == 4
        known = [part for part in path[3 if suite else 0 :] if part in METRICS]
        name = known[-1] if known else "accuracy" if path[0] == "retain" and len(path) == 2 else None
        metric = METRICS[name] if name else None
        better, percent = (metric.better, metric.percent) if metric else (None, False)
        role, data = (path[1], path[2]) if suite else (None, "".join(path[1:2]))
        return cls(path, _label(path[2:] if suite else path), name, better, percent, role, data)

    @property
    def retained(self) -> bool:
        """Whether it is the accuracy on retained data."""
        return self.path[0] == "retain" and self.metric == "accuracy"

    @property
    def shifted(self) -> bool:
        """Whether it is the accuracy on a shifted test set."""
        return self.role == "ood" and self.metric == "accuracy"


def _label(path: tuple[str, ...]) -> str:
    """The path in words."""
    if path == ("accuracy",):
        return "task"
    parts = [part for part in path if part != "accuracy"] or ["accuracy"]
    kept = parts[0] in KEPT and len(parts) > 1
    words = " · ".join(NAMES.get(part, part.replace("_", " ")) for part in parts[kept:])
    return f"kept: {words}" if kept else words


TASK = Key.of("accuracy")


def measured(run: RunData, moment: Moment) -> dict[Key, Interval]:
    """Every number of a result with its interval in the file; accuracies without one get Wilson's if their number of
    images is known.
    """
    result = run.result or {}
    values = dict(_leaves(result.get(moment), ()))
    if moment == "after" and inner(result, "retention", "meaningful") is not False:
        for name in ("agreement", "kl"):
            values |= dict(_leaves(inner(result, "retention", name), ("retention", name)))
    intervals = inner(result, "intervals", moment)
    for name, ends in intervals.items() if isinstance(intervals, dict) else ():
        key = Key.of(name)
        if key in values and fits(ends, tuple[float, float, float]):
            values[key] = Interval(ends[0], values[key].value, ends[2])
    for row in run.scored[moment]:
        values[Key.of(SUITE, row.role, row.data, row.metric)] = Interval(row.low, row.value, row.high)
    for key, value in values.items():
        if not value.known and (key.metric == "accuracy" or key.path == ("retention", "agreement")):
            values[key] = wilson_interval(value.value, image_count(run, key))
    return dict(sorted(values.items(), key=lambda item: _rank(item[0])))


def image_count(run: RunData, key: Key) -> int:
    """The number of images behind a measure; 0 where it is not known."""
    result = run.result or {}
    if key.role is not None:
        counts = (row.n for row in run.scored["after"] if (row.role, row.data) == key.path[1:3])
        return next(counts, 0)
    if key.path[0] in KEPT:
        return inner(result, "changes", "retain", key.data, "n") or 0
    if key.path[0] == "retention":
        return inner(result, "retention", "n") or 0
    return run.data.get("held_out", 0) if len(key.path) == 1 else 0


def _rank(key: Key) -> tuple[int, int]:
    first = ORDER.index(key.path[0]) if key.path[0] in ORDER else len(ORDER)
    return first, len(key.path)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Key, Interval]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif path and (single := number(value)) is not None:
        yield Key.of(*path), Interval.unknown(single)


def changes(runs: Sequence[RunData]) -> dict[Key, Change]:
    """The change on every data set that all runs measured before and after; of several runs, seeds, their mean."""
    by_run = [_changes(run) for run in runs]
    if len(by_run) < 2:
        return by_run[0] if by_run else {}
    shared = [key for key in by_run[0] if all(key in run for run in by_run)]
    return {key: _combined([run[key] for run in by_run], _over_seeds, by_run[0][key].n) for key in shared}


def mean_change(changes: Sequence[Change]) -> Change:
    """The mean over several data sets, whose errors are independent."""
    if len(changes) == 1:
        return changes[0]
    return _combined(changes, independent_mean, sum(change.n for change in changes))


def _combined(changes: Sequence[Change], mean: Callable[[list[Interval]], Interval], n: int) -> Change:
    before, after, difference = (mean([getattr(each, name) for each in changes]) for name in INTERVALS)
    return Change(before, after, difference, n)


def _over_seeds(parts: list[Interval]) -> Interval:
    return t_interval(part.value for part in parts)


def _changes(run: RunData) -> dict[Key, Change]:
    """From the result of training and from saved predictions; in older runs from the accuracies alone."""
    before, after = measured(run, "before"), measured(run, "after")
    pairs = {Key.of(SUITE, each.role, each.name, "accuracy"): each.change for each in paired_sets(run)}
    alone = [key for key in after if key.metric == "accuracy" and key in before and key not in pairs]
    result = pairs | {key: _unpaired(before[key], after[key], image_count(run, key)) for key in alone}
    summary = verdict(run.result or {})
    if summary is not None:
        result[TASK] = summary.task
        result |= {Key.of("retain", name): change for name, change in summary.retained.items()}
    return {key: change for key, change in result.items() if key.role != "task"}


def _unpaired(before: Interval, after: Interval, n: int) -> Change:
    """The change between two accuracies whose single hits are not known: as if on different images, which is wider."""
    first, second = (each if each.known else wilson_interval(each.value, n) for each in (before, after))
    value = second.value - first.value
    half = math.hypot(first.half_width, second.half_width)
    return Change(first, second, Interval(value - half, value, value + half), n)
