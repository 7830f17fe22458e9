"""Projections are pure, and say what they do."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracer.evaluation.suites import Columns, Everything, LargestOf

LOGITS = torch.tensor([[0.1, 0.9, -3.0, 2.0], [5.0, 4.0, 3.0, 2.0]])


def test_by_hand() -> None:
    assert torch.equal(Everything(4)(LOGITS), LOGITS)
    assert Columns((3, 0), 4)(LOGITS).tolist() == LOGITS[:, [3, 0]].tolist()
    assert LargestOf(((0, 2), (1,), (3, 2, 1)), 4)(LOGITS).tolist() == [
        [LOGITS[0, 0], LOGITS[0, 1], LOGITS[0, 3]],
        [LOGITS[1, 0], LOGITS[1, 1], LOGITS[1, 1]],
    ]


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 99)
)
def test_the_largest_of_each_group(groups: list[list[int]], seed: int) -> None:
    logits = torch.randn(3, 10, generator=torch.Generator().manual_seed(seed))
    expected = torch.stack([logits[:, group].amax(dim=1) for group in groups], dim=1)
    assert torch.equal(LargestOf(tuple(map(tuple, groups)), 10)(logits), expected)


def test_single_columns_are_a_restriction() -> None:
    assert torch.equal(LargestOf(((2,), (0,)), 4)(LOGITS), Columns((2, 0), 4)(LOGITS))


@pytest.mark.parametrize("project", [Everything(5), Columns((0,), 5), LargestOf(((0,),), 5)])
def test_logits_of_another_model_are_refused(project) -> None:
    with pytest.raises(ValueError, match="logits of 5 classes"):
        project(LOGITS)
    assert "5" in project.description


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        LargestOf(((0,), ()), 4)
