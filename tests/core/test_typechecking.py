"""The checker of shapes and types is at work: in every test, on the first calls of every function."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError
from typechecking import CALLS

from tracer.core.metrics.scores import label_rank

LOGITS, LABEL = torch.eye(3), torch.arange(3)


@pytest.mark.parametrize("test", range(2))
def test_wrong_shapes_are_refused_in_every_test(test: int) -> None:
    with pytest.raises(TypeCheckError):
        label_rank(LOGITS, LABEL[:2])
    for _ in range(CALLS):
        assert not label_rank(LOGITS, LABEL).any()
