"""How heads start, and the logistic regression that solves for one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import length, same
from scipy import optimize

from tracer.data.embedded.digits import digits
from tracer.data.features import embed_images
from tracer.methods.heads import Random, Solved, ZeroShot
from tracer.models.logistic import logistic
from tracer.models.student import Head, initialise_from
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World

TEMPLATES = ("the digit {}", "a {}")


@pytest.fixture(scope="module")
def examples():
    found = digits("train")
    return found.take(np.concatenate([np.flatnonzero(found.labels == digit)[:3] for digit in range(10)]))


def test_zero_shot_heads_score_as_the_zero_shot_classifier(shared_student, examples) -> None:
    world = World("cpu", "fp32")
    features = torch.randn(4, 128) * 3
    unit = features / features.norm(dim=1, keepdim=True)
    expected = shared_student.scale * unit @ zero_shot(shared_student, examples.classes, TEMPLATES).T
    for folded in (True, False):
        head = ZeroShot(folded=folded)(shared_student, examples, TEMPLATES, world, 0)
        same(head(features), expected, length(shared_student))


def test_a_fixed_temperature_leaves_unit_rows(shared_student, examples) -> None:
    head = ZeroShot(folded=False, bias=False)(shared_student, examples, TEMPLATES, World("cpu", "fp32"), 0)
    same(head.weight.norm(dim=1), torch.ones(10), sums=128)
    assert head.bias is None
    assert head.scale == pytest.approx(float(shared_student.scale))


def test_prompts_of_its_own(shared_student, examples) -> None:
    world = World("cpu", "fp32")
    own = ZeroShot(prompts=("a photo of a {}.",))(shared_student, examples, TEMPLATES, world, 0)
    other = ZeroShot()(shared_student, examples, ("a photo of a {}.",), world, 0)
    assert torch.equal(own.weight, other.weight)


def test_a_random_head_is_a_function_of_the_seed(shared_student, examples) -> None:
    first, again, other = (
        Random()(shared_student, examples, TEMPLATES, World("cpu", "fp32"), seed).weight for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_head_over_raw_features_sees_their_length() -> None:
    head, unit = Head(torch.randn(3, 5), scale=None), Head(torch.randn(3, 5))
    features = torch.randn(2, 5)
    same(head(2 * features), 2 * head(features), sums=5)
    same(unit(2 * features), unit(features), sums=5)


@pytest.mark.parametrize("scale", [None, 1.0, 14.0])
def test_a_head_survives_its_weights(student, scale: float | None) -> None:
    student.head = Head(torch.randn(3, 128), bias=scale != 14.0, scale=scale)
    weights, features = dict(student.state_dict()), torch.randn(2, 128)
    expected = student.head(features)
    student.head = None
    initialise_from(student, weights)
    assert student.head is not None
    assert torch.equal(student.head(features), expected)


def test_logistic_regression_reaches_scipys_optimum() -> None:
    rng = np.random.default_rng(0)
    features, label, l2 = rng.normal(size=(60, 5)), rng.integers(3, size=60), 1e-2

    def loss(flat: np.ndarray) -> float:
        weight, bias = flat[:15].reshape(3, 5), flat[15:]
        logits = features @ weight.T + bias
        norm = np.log(np.exp(logits).sum(axis=1))
        return float((norm - logits[np.arange(60), label]).mean() + l2 / 2 * (weight**2).sum())

    best = optimize.minimize(loss, np.zeros(18), method="BFGS", options={"gtol": 1e-8})
    weight, bias = logistic(torch.from_numpy(features), torch.from_numpy(label), 3, l2)
    found = np.concatenate([weight.numpy().ravel(), bias.numpy()])
    assert loss(found) <= best.fun + 1e-12
    np.testing.assert_allclose(weight.numpy().ravel(), best.x[:15], atol=1e-5)


def test_a_solved_head_is_the_same_every_time(shared_student, examples) -> None:
    world = World("cpu", "fp32")
    one, two = (Solved(1e-2, unit=True)(shared_student, examples, TEMPLATES, world, seed) for seed in (1, 2))
    assert torch.equal(one.weight, two.weight)
    assert one.scale is not None


def test_a_solved_head_fits_raw_features(shared_student, examples) -> None:
    head = Solved(1e-3)(shared_student, examples, TEMPLATES, World("cpu", "fp32"), 0)
    assert head.scale is None
    features = torch.cat([*embed_images(shared_student, examples, World("cpu", "fp32"), unit=False)])
    found = (head(features).argmax(dim=1) == torch.from_numpy(examples.labels)).float().mean()
    assert found > 0.5  # chance is 0.1
