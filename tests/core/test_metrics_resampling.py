"""Intervals: exact for a resample, of the right width, and blind to what two runs share."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from closeness import same
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import METRICS, accuracy, bootstrap, brier, ece, mean_std, nll, optimism, paired


def predictions(n: int, k: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, k, generator=generator)
    return logits, torch.multinomial(logits.softmax(dim=1), 1, generator=generator)[:, 0]


@pytest.mark.parametrize("name", METRICS)
def test_resampling_summaries_is_resampling_the_data(name: str) -> None:
    logits, label = predictions(700)
    draw = torch.randint(700, (3, 700), generator=torch.Generator().manual_seed(1))
    fast = METRICS[name].score(METRICS[name].summaries(logits, label)[draw])
    slow = [METRICS[name](logits[row], label[row]) for row in draw]
    same(fast, slow, sums=700, size=max(1, *slow))


@pytest.mark.parametrize("name", METRICS)
def test_the_interval_holds_its_value_and_stays_in_range(name: str) -> None:
    logits, label = predictions(60, k=12)
    low, value, high = bootstrap(METRICS[name], logits, label, samples=200)
    assert value == METRICS[name](logits, label)
    assert 0 <= low <= value <= high <= METRICS[name].ceiling
    assert low < high


@pytest.mark.parametrize("measure", [accuracy, nll, brier])
def test_width_is_that_of_a_mean(measure) -> None:
    logits, label = predictions(2000)
    each = torch.tensor([measure(logits[i : i + 1], label[i : i + 1]) for i in range(2000)])
    half = 1.96 * float(each.std()) / math.sqrt(2000)
    low, value, high = bootstrap(measure, logits, label)
    assert high - value == pytest.approx(half, rel=0.15)
    assert value - low == pytest.approx(half, rel=0.15)


def test_nineteen_intervals_in_twenty_hold_the_truth() -> None:
    truth = accuracy(*predictions(200_000, seed=99))
    held = 0
    for seed in range(200):
        low, _, high = bootstrap(accuracy, *predictions(400, seed=seed), samples=200, seed=seed)
        held += low <= truth <= high
    assert 180 <= held <= 199  # 190 expected, standard deviation 3


def test_the_upward_bias_of_calibration_errors_is_taken_off() -> None:
    logits, label = predictions(1000)  # perfectly calibrated: what ECE reads is noise
    low, value, high = bootstrap(ece, logits, label)
    assert value - low > high - value


def test_seeds_repeat_and_differ() -> None:
    logits, label = predictions(100)
    first = bootstrap(nll, logits, label, samples=50, seed=1)
    assert first == bootstrap(nll, logits, label, samples=50, seed=1)
    assert first != bootstrap(nll, logits, label, samples=50, seed=2)


def test_memory_is_bounded_by_drawing_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracer.core.metrics import resampling

    monkeypatch.setattr(resampling, "DRAWS", 250)
    shapes = [tuple(draw.shape) for draw in resampling.draws(100, samples=5, seed=0)]
    assert shapes == [(2, 100), (2, 100), (1, 100)]


def test_a_run_does_not_differ_from_itself() -> None:
    logits, label = predictions(300)
    assert paired(accuracy, logits, logits, label) == (0, 0, 0)


def test_pairing_sees_what_separate_intervals_hide() -> None:
    logits, label = predictions(2000)
    worse = logits.clone()
    worse[:40] = -worse[:40]  # the same run, spoiled on 2 % of the samples
    difference = paired(accuracy, logits, worse, label)
    assert difference.value == pytest.approx(accuracy(logits, label) - accuracy(worse, label))
    assert difference.excludes_zero
    separate = bootstrap(accuracy, logits, label)
    assert bootstrap(accuracy, worse, label).high > separate.low  # the two intervals overlap
    assert difference.high - difference.low < (separate.high - separate.low) / 2
    mirrored = paired(accuracy, worse, logits, label)
    assert mirrored == pytest.approx((-difference.high, -difference.value, -difference.low))


def test_pairing_needs_the_same_samples() -> None:
    logits, label = predictions(10)
    with pytest.raises((ValueError, TypeError)):
        paired(accuracy, logits, logits[:5], label)


def test_mean_and_spread_over_seeds() -> None:
    values = [82.7, 82.8, 82.9]
    assert mean_std(values) == pytest.approx((82.8, statistics.stdev(values), 3))
    assert mean_std([5.0]) == (5.0, None, 1)
    with pytest.raises(UserError, match="no values"):
        mean_std([])


def test_optimism_of_the_best_of_equal_models() -> None:
    """The best of five equal models looks better than it is, and less so after the correction; one fixed does not."""
    generator = torch.Generator().manual_seed(0)
    looks, corrected = [], []
    for trial in range(20):
        hits = torch.rand(5, 200, generator=generator) < 0.6
        best = float(hits.double().mean(dim=1).max())
        looks.append(best - 0.6)
        corrected.append(looks[-1] - optimism(hits, lambda drawn: int(drawn.sum(dim=1).argmax()), 50, trial))
        assert optimism(hits, lambda _: 3, 2) == 0
    assert statistics.mean(looks) > 0.03
    assert abs(statistics.mean(corrected)) < 0.5 * statistics.mean(looks)
