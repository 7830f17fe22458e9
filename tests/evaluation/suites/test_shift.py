"""Suites: roles, averages, and counting before scoring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracer.core.errors import UserError
from tracer.data.examples import Examples, Pixels
from tracer.evaluation.suites.shift import AbsentError, Average, Role, Shift, Suite


def examples(n: int) -> Examples:
    pixels = np.zeros((n, 2, 2, 3), np.uint8)
    return Examples(
        "x", Pixels(pixels), [str(i) for i in range(n)], np.zeros(n, np.int64), [()] * n, ("a", "b")
    )


def shift(name: str, role: Role = "ood", size: int | None = None, here: int = 3) -> Shift:
    return Shift(name, role, lambda: examples(here), ("a", "b"), size=size)


def absent() -> Examples:
    raise AbsentError("gone")


def test_a_complete_suite_opens() -> None:
    opened = Suite("s", (shift("one", "id", size=3), shift("two"))).open()
    assert [(each.shift.name, len(each.examples), each.partial) for each in opened] == [
        ("one", 3, False),
        ("two", 3, False),
    ]


def test_all_problems_are_told_together() -> None:
    suite = Suite("s", (shift("one", size=4), replace(shift("two"), load=absent), shift("three", size=2)))
    with pytest.raises(UserError) as refusal:
        suite.open()
    for part in ("one has 3 images here, and the complete set 4", "gone", "three has 3", "--allow-partial"):
        assert part in str(refusal.value)
    opened = suite.open(allow_partial=True)
    assert [(each.shift.name, each.partial) for each in opened] == [("one", True), ("three", True)]


def test_averages_follow_roles() -> None:
    names = ("a", "b", "c")
    suite = Suite(
        "s", tuple(map(shift, names)), extra=(Average("less", ("a", "b")), Average("no", ("a", "z")))
    )
    assert suite.averages == (Average("OOD", names), Average("less", ("a", "b")))
    assert Suite("s", (shift("a"), shift("k", "retain"))).averages == ()
    assert Suite("s", (shift("a"), shift("b")), extra=(Average("same", ("a", "b")),)).averages == (
        Average("OOD", ("a", "b")),
    )


def test_names_are_checked() -> None:
    with pytest.raises(UserError, match="more than one shift called a"):
        Suite("s", (shift("a"), shift("a")))
