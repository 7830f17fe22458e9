"""ECE is a property of the data set; the batched one is a property of the batch size too."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch
from closeness import same
from torch import Tensor

from tracer.core.metrics import adaptive_ece, ece, ece_batched, nll, noise_floor, reliability

N = 50_000


def calibrated(n: int, k: int = 10, sharpness: float = 2.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Labels drawn from the very probabilities that the logits state."""
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(n, k, generator=generator)
    return logits, torch.multinomial(logits.softmax(dim=1), 1, generator=generator)[:, 0]


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0, 4.0])
def test_a_calibrated_model_reads_almost_nothing(sharpness: float) -> None:
    logits, label = calibrated(N, sharpness=sharpness)
    assert ece(logits, label) < 0.006
    assert adaptive_ece(logits, label) < 0.008


def test_batching_reads_error_where_there_is_none() -> None:
    logits, label = calibrated(N)
    readings = [ece_batched(logits, label, batch=batch) for batch in (64, 128, 512, 4096)]
    assert readings == sorted(readings, reverse=True)
    assert 0.03 < ece_batched(logits, label) < 0.046
    same(ece_batched(logits, label, batch=N, bins=15), ece(logits, label), sums=N, size=1)


@pytest.mark.parametrize("n", [5000, 1024, 513])
def test_batches_are_weighted_by_their_size(n: int) -> None:
    """Against a loop in NumPy: 5 000 samples are nine batches of 512 and one of 392, 513 leave a batch of one."""
    logits, label = calibrated(n)
    p = np.exp(logits.double().numpy())
    p /= p.sum(axis=1, keepdims=True)
    sure, right = p.max(axis=1), p.argmax(axis=1) == label.numpy()
    total = 0.0
    for start in range(0, n, 512):
        batch = slice(start, min(start + 512, n))
        error = 0.0
        for b in range(10):
            inside = np.minimum(np.floor(sure[batch] * 10), 9) == b
            if inside.any():
                error += inside.mean() * abs(right[batch][inside].mean() - sure[batch][inside].mean())
        total += error * len(sure[batch]) / n
    same(ece_batched(logits, label), total, sums=n, size=1)


def test_one_batch_is_the_whole_data_set_in_any_order() -> None:
    logits, label = calibrated(3000)
    order = torch.randperm(3000, generator=torch.Generator().manual_seed(3))
    whole = ece(logits, label, bins=10)
    same(ece_batched(logits[order], label[order], batch=3000), whole, sums=3000, size=1)
    same(ece_batched(logits, label, batch=100_000), whole, sums=3000, size=1)


@pytest.mark.parametrize("bins", [1, 7, 10, 15, 100])
def test_equals_torchmetrics_away_from_certainty(bins: int) -> None:
    import_module(
        "tracer.models.open_clip_compat"
    )  # cures the import of torchvision, which torchmetrics wants
    from torchmetrics.functional.classification import multiclass_calibration_error

    logits, label = calibrated(5000, seed=bins)
    probability = logits.double().softmax(dim=1)
    assert float(probability.max()) < 1
    theirs = multiclass_calibration_error(probability, label, num_classes=10, n_bins=bins, norm="l1")
    assert ece(logits, label, bins=bins) == pytest.approx(float(theirs), abs=1e-6)


def test_certainty_belongs_to_the_last_bin() -> None:
    # confidence 1 (half of them wrong) and 0.99 (all right) share the last of 10 bins, where errors cancel
    certain, sure = torch.tensor([[1000.0, 0.0]]), torch.tensor([[0.99, 0.01]]).log()
    logits = torch.cat([certain.repeat(10, 1), sure.repeat(10, 1)])
    label = torch.tensor([0, 1] * 5 + [0] * 10)
    assert ece(logits, label, bins=10) == pytest.approx(0.995 - 0.75)
    (last,) = reliability(logits, label, bins=10).bins
    assert (last.low, last.high, last.size) == (0.9, 1.0, 20)
    assert last.confidence == pytest.approx(0.995)
    assert last.accuracy == 0.75


def test_a_border_belongs_to_the_bin_above() -> None:
    logits = torch.zeros(4, 2)  # confidence exactly ½
    (only,) = reliability(logits, torch.zeros(4, dtype=torch.long), bins=4).bins
    assert (only.low, only.high) == (0.5, 0.75)


@pytest.mark.parametrize("bins", [1, 3, 15])
def test_the_curve_adds_up_to_the_error(bins: int) -> None:
    logits, label = calibrated(800, sharpness=6)
    curve = reliability(logits * 2, label, bins=bins)
    same(curve.ece, ece(logits * 2, label, bins=bins), sums=800, size=1)
    assert sum(bin.size for bin in curve.bins) == 800
    assert all(bin.low <= bin.confidence <= bin.high for bin in curve.bins)


def test_adaptive_bins_hold_equally_many() -> None:
    # six samples in three bins of two: gaps (0.6−1)+(0.7−0), (0.8−1)+(0.9−1), (0.95−0)+(0.99−1)
    confidence = torch.tensor([0.99, 0.6, 0.9, 0.7, 0.95, 0.8]).double()
    logits = torch.stack([confidence, 1 - confidence], dim=1).log()
    label = torch.tensor([0, 0, 0, 1, 1, 0])
    assert adaptive_ece(logits, label, bins=3) == pytest.approx((0.3 + 0.3 + 0.94) / 6)


def test_equal_confidences_share_an_adaptive_bin() -> None:
    logits = torch.tensor([[0.8, 0.2]]).log().repeat(100, 1)
    label = torch.tensor([0] * 80 + [1] * 20)
    assert adaptive_ece(logits, label) == pytest.approx(0, abs=1e-7)


def test_one_sided_errors_are_the_same_in_every_binning() -> None:
    logits, label = calibrated(20_000)
    overconfident = logits * 4
    wide = ece(overconfident, label)
    assert adaptive_ece(overconfident, label) == pytest.approx(wide, abs=0.01)
    assert ece(overconfident, label, bins=1) == pytest.approx(wide, abs=0.01)


def test_the_floor_is_what_a_calibrated_model_reads() -> None:
    logits, label = calibrated(4000)
    for measure in (ece, adaptive_ece, ece_batched):
        floor = noise_floor(measure, logits, samples=20)
        assert measure(logits, label) == pytest.approx(floor, rel=0.5)
        assert measure(logits * 3, label) > 2 * noise_floor(measure, logits * 3, samples=20)
    assert noise_floor(ece, logits, samples=20) > 1.5 * noise_floor(ece, logits.repeat(4, 1), samples=20)
    with pytest.raises(ValueError, match="does not measure calibration"):
        noise_floor(nll, logits)
