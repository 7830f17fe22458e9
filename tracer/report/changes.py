"""Accuracy before and after on each data set, with counts and intervals of the difference."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracer.core.metrics import Interval, t_interval, wilson_interval
from tracer.evaluation.verdict import Change, verdict
from tracer.report.measures import SUITE, Key, image_count, measured
from tracer.report.paired import paired_sets
from tracer.report.run_data import RunData

TASK = Key(("accuracy",))


def changes(runs: Sequence[RunData]) -> dict[Key, Change]:
    """The change on every data set that all runs measured before and after; of several runs, seeds, their mean."""
    by_run = [_of_run(run) for run in runs]
    if len(by_run) < 2:
        return by_run[0] if by_run else {}
    shared = [key for key in by_run[0] if all(key in run for run in by_run)]
    return {key: _over_seeds([run[key] for run in by_run]) for key in shared}


def mean_change(changes: Sequence[Change]) -> Change:
    """The mean over several data sets, whose errors are independent."""
    if len(changes) == 1:
        return changes[0]
    before, after, difference = (
        _mean([getattr(change, name) for change in changes]) for name in ("before", "after", "difference")
    )
    return Change(before, after, difference, sum(change.n for change in changes))


def _of_run(run: RunData) -> dict[Key, Change]:
    """From the result of training and from saved predictions; in older runs from the accuracies alone."""
    before, after = measured(run, "before"), measured(run, "after")
    pairs = {Key((SUITE, each.role, each.name, "accuracy")): each.change for each in paired_sets(run)}
    alone = [key for key in after if key.metric == "accuracy" and key in before and key not in pairs]
    result = pairs | {key: _unpaired(before[key], after[key], image_count(run, key)) for key in alone}
    summary = verdict(run.result or {})
    if summary is not None:
        result[TASK] = summary.task
        result |= {Key(("retain", name)): change for name, change in summary.retained.items()}
    return {key: change for key, change in result.items() if key.role != ""}


def _unpaired(before: Interval, after: Interval, n: int) -> Change:
    """The change between two accuracies whose single hits are not known: as if on different images, which is wider."""
    first, second = (each if each.known else wilson_interval(each.value, n) for each in (before, after))
    value = second.value - first.value
    half = math.hypot(first.half_width, second.half_width)
    return Change(first, second, Interval(value - half, value, value + half), n)


def _over_seeds(changes: Sequence[Change]) -> Change:
    before, after, difference = (
        t_interval(getattr(change, name).value for change in changes)
        for name in ("before", "after", "difference")
    )
    return Change(before, after, difference, changes[0].n)


def _mean(parts: Sequence[Interval]) -> Interval:
    value = sum(part.value for part in parts) / len(parts)
    half = math.hypot(*(part.half_width for part in parts)) / len(parts)
    return Interval(value - half, value, value + half)
