"""Every metric: hand cases, a NumPy twin, invariance to order, and refusal of what cannot be measured."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from closeness import near, same
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tracer.core import metrics
from tracer.core.errors import UserError
from tracer.core.metrics import (
    METRICS,
    Metric,
    accuracy,
    agreement,
    brier,
    ece,
    kl,
    macro_f1,
    nll,
    telling,
    temperature,
    top5,
)


def predictions(n: int, k: int, seed: int = 0, sharpness: float = 2.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(n, k, generator=generator)
    label = torch.multinomial(logits.softmax(dim=1), 1, generator=generator)[:, 0]
    return logits, label


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def numpy_ece(p: np.ndarray, y: np.ndarray, bins: int) -> float:
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == y
    edges = np.linspace(0, 1, bins + 1)
    total = 0.0
    for b in range(bins):
        inside = (confidence >= edges[b]) & ((confidence < edges[b + 1]) | (b == bins - 1))
        if inside.any():
            total += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    return total


def numpy_adaptive(p: np.ndarray, y: np.ndarray, bins: int) -> float:
    order = np.argsort(p.max(axis=1))
    confidence, correct = p.max(axis=1)[order], (p.argmax(axis=1) == y)[order]
    cuts = [len(y) * b // bins for b in range(bins + 1)]
    parts = [slice(a, b) for a, b in pairwise(cuts) if b > a]
    return sum(abs((correct[s] - confidence[s]).sum()) for s in parts) / len(y)


def numpy_f1(p: np.ndarray, y: np.ndarray) -> float:
    chosen, values = p.argmax(axis=1), []
    for c in np.unique(y):
        hit, missed = ((chosen == c) & (y == c)).sum(), ((chosen != c) & (y == c)).sum()
        false = ((chosen == c) & (y != c)).sum()
        values.append(2 * hit / (2 * hit + missed + false))
    return float(np.mean(values))


def numpy_batched(p: np.ndarray, y: np.ndarray, batch: int, bins: int) -> float:
    starts = range(0, len(y), batch)
    errors = [numpy_ece(p[s : s + batch], y[s : s + batch], bins) for s in starts]
    return float(np.average(errors, weights=[len(y[s : s + batch]) for s in starts]))


TWINS = {
    "accuracy": lambda p, y: (p.argmax(axis=1) == y).mean(),
    "top5": lambda p, y: np.mean([y[i] in np.argsort(-p[i])[:5] for i in range(len(y))]),
    "macro_f1": numpy_f1,
    "nll": lambda p, y: -np.log(p[np.arange(len(y)), y]).mean(),
    "brier": lambda p, y: ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean(),
    "ece": lambda p, y: numpy_ece(p, y, 15),
    "adaptive_ece": lambda p, y: numpy_adaptive(p, y, 15),
    "ece_batched": lambda p, y: numpy_batched(p, y, 512, 10),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 3), (1300, 11)])
def test_numpy_twin(name: str, n: int, k: int) -> None:
    logits, label = predictions(n, k)
    p = softmax(logits.double().numpy())
    same(METRICS[name](logits, label), TWINS[name](p, label.numpy()), sums=n * k, size=1)


@pytest.mark.parametrize("name", METRICS)
def test_order_matters_only_where_declared(name: str) -> None:
    logits, label = predictions(1500, 6)
    logits[:700] = logits[0]  # equal confidences must not break the invariance
    order = torch.randperm(1500, generator=torch.Generator().manual_seed(1))
    unordered = near(METRICS[name](logits[order], label[order]), METRICS[name](logits, label), 9000, size=1)
    assert unordered is not METRICS[name].ordered


@pytest.mark.parametrize("name", METRICS)
def test_single_and_double_precision_agree(name: str) -> None:
    logits, label = predictions(400, 6)
    assert METRICS[name](logits, label) == METRICS[name](logits.double(), label)


@pytest.mark.parametrize("name", METRICS)
def test_refuses_what_cannot_be_measured(name: str) -> None:
    measure = METRICS[name]
    logits, label = predictions(20, 4)
    with pytest.raises(UserError, match="nothing to measure"):
        measure(logits[:0], label[:0])
    for bad in (math.nan, math.inf, -math.inf):
        broken = logits.clone()
        broken[3, 1] = bad
        with pytest.raises(UserError, match=r"1 of 20 rows .* row 3"):
            measure(broken, label)
    for outside in (4, -1):
        with pytest.raises(UserError, match=rf"label {outside} in row 5 is outside the 4 classes"):
            measure(logits, label.index_fill(0, torch.tensor([5]), outside))
    with pytest.raises(ValueError, match="bfloat16"):
        measure(logits.bfloat16(), label)


@pytest.mark.parametrize("name", METRICS)
def test_says_what_it_is(name: str) -> None:
    assert METRICS[name].name == name
    assert METRICS[name].ceiling >= METRICS[name](*predictions(50, 3)) >= 0


def test_perfect_predictions() -> None:
    label = torch.arange(5).repeat(4)
    logits = 1000 * torch.nn.functional.one_hot(label, 5).float()
    for name, measure in METRICS.items():
        assert measure(logits, label) == (1.0 if measure.better == "higher" else 0.0), name


def test_hand_cases() -> None:
    logits = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.5, 0.4, 0.1]]).double().log()
    label = torch.tensor([0, 0, 2, 1])
    assert accuracy(logits, label) == 0.5
    # class 0: 1 hit of 2 predicted and 2 actual; class 1: none; class 2: 1 of 1 and 1
    assert macro_f1(logits, label) == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert nll(logits, label) == pytest.approx(-math.log(0.6 * 0.2 * 0.7 * 0.4) / 4)
    errors = [0.16 + 0.09 + 0.01, 0.64 + 0.25 + 0.09, 0.01 + 0.04 + 0.09, 0.25 + 0.36 + 0.01]
    assert brier(logits, label) == pytest.approx(sum(errors) / 4)
    # thirds: the middle holds confidences 0.6 (right), 0.5, 0.5 (wrong); the last one 0.7 (right)
    assert ece(logits, label, bins=3) == pytest.approx((0.6 + 0.3) / 4)


def test_equal_logits_choose_the_first_class() -> None:
    logits = torch.zeros(3, 4)
    assert accuracy(logits, torch.tensor([0, 1, 3])) == pytest.approx(1 / 3)
    assert top5(torch.zeros(3, 8), torch.tensor([0, 4, 5])) == pytest.approx(2 / 3)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_metric_that_says_nothing_of_so_few_classes_is_left_out(metric: Metric) -> None:
    """One that is a share is left out where every model has all, and kept where a wrong one does not."""
    for classes in range(2, 8):
        logits, label = torch.arange(float(classes)).expand(20, classes), torch.arange(20) % classes
        constant = metric.percent and metric(logits, label) == 1
        assert (metric in telling(classes)) != constant


def test_f1_leaves_out_classes_that_never_occur() -> None:
    logits, label = torch.eye(5)[[0, 1]], torch.tensor([0, 1])
    assert macro_f1(logits, label) == 1.0
    assert macro_f1(torch.eye(5)[[0, 4]], label) == pytest.approx(1 / 2)


@pytest.mark.parametrize("option", [{"bins": 0}, {"batch": 0}])
def test_options_are_checked(option: dict[str, int]) -> None:
    measure = {"bins": ece, "batch": metrics.ece_batched}[next(iter(option))]
    with pytest.raises(ValueError, match="at least 1"):
        measure(*predictions(5, 3), **option)


@pytest.mark.parametrize("true", [0.3, 1.0, 4.0])
def test_temperature_is_recovered(true: float) -> None:
    logits, label = predictions(20_000, 5)
    assert temperature(logits * true, label) == pytest.approx(true, rel=0.04)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 6), st.floats(0.05, 20))
def test_temperature_minimises_nll(seed: int, k: int, sharpness: float) -> None:
    logits, _ = predictions(60, k, seed, sharpness)
    label = torch.randint(k, (60,), generator=torch.Generator().manual_seed(seed))
    best = temperature(logits, label)
    for other in (max(best * 0.97, 1e-3), min(best * 1.03, 1e3), 1.0, 1e-3, 1e3):
        assert nll(logits.double() / best, label) <= nll(logits.double() / other, label) + 1e-12


def test_temperature_without_a_minimum_stays_finite() -> None:
    label = torch.arange(4)
    assert temperature(torch.eye(4), label) == 1e-3
    assert temperature(-torch.eye(4), label) == 1e3
    assert temperature(torch.zeros(4, 4), label) == 1.0


def test_temperature_calibrates() -> None:
    logits, label = predictions(20_000, 5)
    sharp = logits * 3
    assert ece(sharp, label) > 0.1
    assert ece(sharp / temperature(sharp, label), label) < 0.015


def test_retention_of_the_same_model_is_complete() -> None:
    logits, _ = predictions(50, 7)
    assert agreement(logits, logits) == 1.0
    assert kl(logits, logits) == 0.0
    assert kl(logits, logits + 3) == pytest.approx(0, abs=1e-7)  # a constant shift is the same distribution


def test_retention_by_hand() -> None:
    a = torch.tensor([[0.5, 0.5], [0.9, 0.1]]).double().log()
    b = torch.tensor([[0.25, 0.75], [0.8, 0.2]]).double().log()
    expected = 0.5 * math.log(2) + 0.5 * math.log(2 / 3) + 0.9 * math.log(9 / 8) + 0.1 * math.log(1 / 2)
    assert kl(a, b) == pytest.approx(expected / 2)
    assert agreement(a, b) == 0.5  # of equal logits the first class is the choice
    with pytest.raises((ValueError, TypeError)):  # TypeError when shapes are checked by jaxtyping
        kl(a, b[:1])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_kl_is_never_negative(seed: int) -> None:
    a, _ = predictions(5, 4, seed)
    b, _ = predictions(5, 4, seed + 1)
    assert kl(a, b) > 0
