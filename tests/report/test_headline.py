"""The sentence on top of a report: the mean over test sets, in which the same images count once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tracer.evaluation.verdict import Change
from tracer.report.headline import setting_verdict
from tracer.report.measures import SUITE, Key

FIRST = Change.of([True] * 40 + [False] * 60, [True] * 70 + [False] * 30)
SECOND = Change.of([True] * 50 + [False] * 50, [True] * 60 + [False] * 40)


def verdict(**sets: Change):
    changes = {Key((SUITE, "id", name, "accuracy")): change for name, change in sets.items()}
    setting: Any = SimpleNamespace(changes=changes)
    outcome = setting_verdict(setting)
    assert outcome is not None
    return outcome


def test_one_test_set_under_two_names_counts_once() -> None:
    assert verdict(photos=FIRST, again=FIRST).task == FIRST
    both = verdict(photos=FIRST, others=SECOND, again=FIRST).task
    assert both.n == 200
    assert both.difference.half_width < FIRST.difference.half_width
