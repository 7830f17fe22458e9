"""Test sets as flags, which are written beside the scores, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.data.sources import Reading
from tracer.evaluation.test_sets import TestSets as Sets


@pytest.mark.parametrize(
    "sets",
    [
        Sets(data=("id=a.csv", "retain=b"), reading=Reading(label_column="kind"), templates="name"),
        Sets(suite="imagenet", root=Path("data"), at=("r=x", "a=y"), corrupt=("all",), allow_partial=True),
    ],
)
def test_flags_give_the_same_test_sets(sets: Sets) -> None:
    assert Sets.from_flags(sets.flags) == sets


def test_flags_are_in_the_order_of_the_help() -> None:
    reading = Reading(classes="names.txt")
    sets = Sets(data=("a",), corrupt=("jpeg",), templates="name", reading=reading, allow_partial=True)
    assert " ".join(sets.flags) == (
        "--data a --corrupt jpeg --templates name --classes names.txt --allow-partial"
    )


def test_a_flag_without_its_value_says_nothing() -> None:
    assert Sets.from_flags(["--suite", "--root", "--classes", "--data", "a"]) == Sets(data=("a",))
