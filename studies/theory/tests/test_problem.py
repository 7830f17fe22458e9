"""The loss and its reformulation, written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from studies.theory import problem as forms
from studies.theory.instances import Instance, instance


@pytest.fixture
def case() -> Instance:
    return instance(np.random.default_rng(4))


def test_target_attracts_its_own_text_and_repels_the_others(case: Instance) -> None:
    n = case.images.shape[1]
    by_hand = case.text_map @ case.texts @ (n * np.eye(n) - np.ones((n, n)))
    np.testing.assert_allclose(case.problem.target, by_hand, atol=1e-12)


def test_loss_is_the_printed_double_sum(case: Instance) -> None:
    n = case.images.shape[1]
    u, v = case.image_map @ case.images, case.text_map @ case.texts
    total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                total += (u[:, i] @ v[:, j] - u[:, i] @ v[:, i]) + (u[:, j] @ v[:, i] - u[:, i] @ v[:, i])
    penalty = np.linalg.norm(case.image_map.T @ case.text_map) ** 2
    expected = total / (2 * n * (n - 1)) + 0.3 / 2 * penalty
    loss = forms.mmcl(case.image_map, case.text_map, case.images, case.texts, penalty=0.3)
    assert loss == pytest.approx(expected, rel=1e-12)


def test_trace_form_is_unbounded_where_least_squares_is_not(case: Instance) -> None:
    task = case.problem.target @ np.linalg.pinv(case.images, rtol=1e-8)
    once = forms.trace_form(case.problem, task)
    assert once < 0
    assert forms.trace_form(case.problem, 1e6 * task) == pytest.approx(1e6 * once, rel=1e-9)
    least = forms.least_squares(case.problem, task)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1.0, 1e3):
        other = task + size * rng.normal(size=task.shape)
        assert forms.least_squares(case.problem, other) >= least


def test_quadratic_separates_the_two_forms_at_every_weight(case: Instance) -> None:
    """The forms differ by a constant only where ½‖WX‖² is one: not for two weights of different size."""
    difference = [
        forms.least_squares(case.problem, scale * case.image_map)
        - forms.trace_form(case.problem, scale * case.image_map)
        for scale in (1.0, 2.0)
    ]
    quadratic = forms.separating_quadratic(case.problem, case.image_map)
    assert difference[1] - difference[0] == pytest.approx(3 * quadratic, rel=1e-9)


def test_cross_frobenius_penalty_wears_down_the_complement() -> None:
    """The closed forms leave the penalty out. With it, descent also shrinks W⁰ where there is no data."""
    rng = np.random.default_rng(0)
    case = instance(rng, well_conditioned=True)
    while case.rank == case.images.shape[0]:
        case = instance(rng, well_conditioned=True)
    task, text = case.problem.task, case.text_map
    weights, rate = case.image_map, 0.5 / np.linalg.norm(text, 2) ** 2
    for _ in range(50):
        pull = (weights @ case.images - case.problem.target) @ case.images.T
        weights = weights - rate * (0.1 * pull + text @ (text.T @ weights))
    assert np.linalg.norm(text.T @ task.outside(weights)) < 0.5 * np.linalg.norm(
        text.T @ task.outside(case.image_map)
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("shape", [(3, 5), (2, 4)])
def test_misfitting_shapes_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="start of shape"):
        forms.Problem(np.zeros((4, 6)), np.zeros((3, 6)), np.zeros(shape))
    with pytest.raises(ValueError, match="as many columns"):
        forms.Problem(np.zeros((4, 6)), np.zeros((3, 5)), np.zeros((3, 4)))
