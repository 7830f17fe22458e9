"""Terms add and scale like vectors; what has weight zero is gone; what cannot be meant is refused."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracer.core.batch import Embedding, Scene
from tracer.core.objective import NEEDS, Objective, Sum, Term

POINT = torch.tensor([[0.6, 0.8], [1.0, 0.0]], dtype=torch.float64)

total = Term("total", lambda scene: scene.student.image.sum())
square = Term("square", lambda scene: scene.student.image.square().sum(), needs=frozenset({"text"}))
cube = Term("cube", lambda scene: scene.student.image.pow(3).sum(), needs=frozenset({"teacher", "probe"}))
anything: Any = total  # so that a type checker lets nonsense through
SUM, SQUARE, CUBE = float(POINT.sum()), float(POINT.square().sum()), float(POINT.pow(3).sum())

numbers = st.floats(-1e3, 1e3).filter(lambda weight: weight == 0 or abs(weight) > 1e-6)


def scene(progress: float = 0.0) -> Scene:
    return Scene(Embedding(POINT.clone().requires_grad_()), progress=progress)


def value(objective: Sum, progress: float = 0.0) -> float:
    return float(Objective(objective.weighted)(scene(progress)).total.detach())


def never(name: str, needs: frozenset[str] = frozenset()) -> Term:
    def formula(scene: Scene) -> torch.Tensor:
        raise AssertionError(f"{name} was computed")

    return Term(name, formula, needs)


@given(numbers, numbers, numbers)
def test_the_total_is_linear_in_the_terms(a: float, b: float, c: float) -> None:
    objective = (
        a * total + b * square + c * cube + Term("one", lambda scene: scene.student.image.new_ones(()))
    )
    assert value(objective) == pytest.approx(a * SUM + b * SQUARE + c * CUBE + 1, abs=1e-9)


@given(numbers, numbers, numbers)
def test_scaling_distributes_and_composes(a: float, b: float, c: float) -> None:
    one = Term("one", lambda scene: scene.student.image.new_ones(()))
    left = a * (b * total + c * square) + one
    right = (a * b) * total + square * (a * c) + one
    assert [(weight, term.name) for weight, term in left.weighted] == [
        (weight, term.name) for weight, term in right.weighted
    ]
    assert value(left) == pytest.approx(value(right), abs=1e-9)


def test_sums_may_be_grouped_and_ordered_freely() -> None:
    assert value((total + square) + cube) == value(total + (square + cube))
    assert value(total + square) == pytest.approx(value(square + total))


def test_weights_stand_on_either_side() -> None:
    assert value(3 * square) == value(square * 3) == 3 * SQUARE


def test_the_gradient_is_the_weighted_sum_of_gradients() -> None:
    here = scene()
    (2 * total + 0.5 * square)(here).total.backward()
    torch.testing.assert_close(here.student.image.grad, 2 + 0.5 * 2 * POINT)


def test_parts_are_unweighted_and_constant() -> None:
    loss = (7 * total + 0.1 * square)(scene())
    assert {name: float(part) for name, part in loss.parts.items()} == {"total": SUM, "square": SQUARE}
    assert not any(part.requires_grad for part in loss.parts.values())
    assert loss.total.requires_grad


def test_needs_add_up_and_shrink_with_weight_zero() -> None:
    assert (total + square + cube).needs == {"text", "teacher", "probe"}
    assert (total + square + 0 * cube).needs == {"text"}
    assert (total + 0.0 * (square + cube)).needs == frozenset()
    assert (5 * (0 * square + total)).needs == frozenset()


def test_a_term_of_weight_zero_is_never_computed() -> None:
    objective = total + 0 * never("gone", frozenset({"teacher"}))
    assert list(objective(scene()).parts) == ["total"]
    assert value(objective) == value(1 * total)


def test_nothing_left_is_nothing_to_minimise() -> None:
    with pytest.raises(ValueError, match="nothing to minimise"):
        (0 * total)(scene())


@pytest.mark.parametrize("make", [lambda: total + total, lambda: total + (square + 3 * total)])
def test_a_term_appears_once(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="total"):
        make()


def test_a_vanished_term_may_come_back() -> None:
    assert value(0 * total + 2 * total) == 2 * SUM


def test_weights_may_follow_progress() -> None:
    objective = (lambda progress: 1 - progress) * total + square
    assert value(objective, 0.0) == pytest.approx(SUM + SQUARE)
    assert value(objective, 0.75) == pytest.approx(0.25 * SUM + SQUARE)
    assert value(objective, 1.0) == pytest.approx(SQUARE)
    nested = 3 * ((lambda progress: progress) * (2 * total)) + (lambda progress: progress) * (
        (lambda progress: progress + 1) * square
    )
    assert value(nested, 0.5) == pytest.approx(3 * SUM + 0.75 * SQUARE)


def test_a_moving_weight_is_there_from_the_start() -> None:
    """It may be zero now and not later, so what it needs is needed."""
    assert ((lambda progress: progress) * square + total).needs == {"text"}


def test_two_terms_have_no_product() -> None:
    with pytest.raises(TypeError):
        mul(anything, square)
    with pytest.raises(TypeError):
        mul(anything, square + cube)


def test_a_term_and_a_number_have_no_sum() -> None:
    with pytest.raises(TypeError):
        add(anything, 1)


def test_an_objective_reads_like_an_equation() -> None:
    assert repr(total + 0.9 * (3.9 * square) + (lambda progress: progress) * cube) == (
        "total + 3.51·square + λ(t)·cube"
    )


def test_terms_ask_only_for_what_exists() -> None:
    with pytest.raises(ValueError, match="audio"):
        Term("deaf", lambda scene: scene.student.image.sum(), needs=frozenset({"audio"}))
    assert len(NEEDS) <= 8  # a longer vocabulary would be a framework
