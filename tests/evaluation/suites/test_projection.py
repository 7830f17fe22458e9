"""Logits are projected to the classes of a test set, whose rule says how."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracer.data.examples import Examples
from tracer.evaluation.suites.shift import Shift

LOGITS = torch.tensor([[0.1, 0.9, -3.0, 2.0], [5.0, 4.0, 3.0, 2.0]])


def unread() -> Examples:
    raise AssertionError("a projection reads no data")


def shift(classes: int, *groups: tuple[int, ...]) -> Shift:
    return Shift("x", "id", unread, tuple(map(str, range(classes))), groups=groups)


def test_by_hand() -> None:
    assert torch.equal(shift(4).project(LOGITS), LOGITS)
    assert shift(4, (3,), (0,)).project(LOGITS).tolist() == LOGITS[:, [3, 0]].tolist()
    assert shift(4, (0, 2), (1,), (3, 2, 1)).project(LOGITS).tolist() == [
        [LOGITS[0, 0], LOGITS[0, 1], LOGITS[0, 3]],
        [LOGITS[1, 0], LOGITS[1, 1], LOGITS[1, 1]],
    ]


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 99)
)
def test_the_largest_of_each_group(groups: list[list[int]], seed: int) -> None:
    logits = torch.randn(3, 10, generator=torch.Generator().manual_seed(seed))
    expected = torch.stack([logits[:, group].amax(dim=1) for group in groups], dim=1)
    assert torch.equal(shift(10, *map(tuple, groups)).project(logits), expected)


@pytest.mark.parametrize(
    ("groups", "rule"),
    [
        ((), "x: all 5 classes"),
        (((0,), (3,)), "x: logits restricted to 2 of 5 classes"),
        (((0, 1), (3,)), "x: 2 classes, each the largest logit of its own among 3 of 5 columns"),
    ],
)
def test_logits_of_another_model_are_refused(groups: tuple[tuple[int, ...], ...], rule: str) -> None:
    with pytest.raises(ValueError, match="logits of 5 classes"):
        shift(5, *groups).project(LOGITS)
    assert shift(5, *groups).rule == rule


def test_captions_have_no_classes() -> None:
    assert shift(0).rule == "x: captions, no classes"
