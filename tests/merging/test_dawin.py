"""DaWin and the ensemble against their definitions in NumPy float64; the mixture of Beta densities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import same
from scipy import stats

from tracer.merging.dawin import (
    Mixture,
    clustered,
    clusters,
    coefficients,
    ensemble,
    entropies,
    fit,
    mixed,
)


def logits(seed: int, n: int = 20, k: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=3, size=(n, k))


def softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def entropy(rows: np.ndarray) -> np.ndarray:
    p = softmax(rows)
    return -(p * np.log(p)).sum(axis=1)


def test_entropies_by_their_definition() -> None:
    found = entropies(torch.from_numpy(logits(0)))
    same(found, entropy(logits(0)), sums=8)


def test_coefficients_by_their_formula() -> None:
    h0, h1 = entropy(logits(0)), entropy(logits(1))
    b = (h0.std() / h0.mean() + h1.std() / h1.mean()) / 2
    w = (h0.mean() + h1.mean()) / h0.mean()
    found = coefficients(torch.from_numpy(h0), torch.from_numpy(h1))
    expected = (np.exp(-h1) + b / w) / (np.exp(-h0) + np.exp(-h1) + b)
    same(found, expected, sums=60)


def test_models_that_are_certain_of_every_sample() -> None:
    """Logits of 1e4: an entropy of 0 has no spread, and the offset is that of the other model."""
    certain, unsure = torch.zeros(20, dtype=torch.float64), torch.from_numpy(entropy(logits(1)))
    b = unsure.std(correction=0) / unsure.mean() / 2
    expected = (-unsure).exp() / (1 + (-unsure).exp() + b)  # w = ∞
    same(coefficients(certain, unsure), expected, sums=60)
    same(coefficients(certain, certain), torch.full_like(certain, 0.5), sums=60)


def test_equally_sure_models_meet_halfway() -> None:
    h = torch.from_numpy(entropy(logits(0)))
    same(coefficients(h, h), torch.full_like(h, 0.5), sums=60)


def test_the_ensemble_mixes_probabilities() -> None:
    share = np.random.default_rng(2).uniform(size=20)
    found = ensemble(*(torch.from_numpy(logits(seed)) for seed in (0, 1)), torch.from_numpy(share))
    expected = (1 - share)[:, None] * softmax(logits(0)) + share[:, None] * softmax(logits(1))
    same(softmax(found.double().numpy()), expected, sums=8, dtype=found.dtype, size=10)


@pytest.mark.parametrize(("share", "seed"), [(0.0, 0), (1.0, 1)])
def test_the_ensemble_at_its_ends(share: float, seed: int) -> None:
    found = ensemble(torch.from_numpy(logits(0)), torch.from_numpy(logits(1)), share)
    same(softmax(found.double().numpy()), softmax(logits(seed)), sums=8, dtype=found.dtype, size=10)


def test_mixed_asks_once_for_each_share_and_keeps_the_order() -> None:
    share = torch.tensor([0.5, 0.1, 0.5, 0.9, 0.1])
    asked: list[float] = []

    def predict(alpha: float, indices: torch.Tensor) -> torch.Tensor:
        asked.append(alpha)
        return torch.stack([indices.double(), torch.full((len(indices),), alpha, dtype=torch.float64)], dim=1)

    found = mixed(share, predict)
    assert len(asked) == 3
    assert found[:, 0].tolist() == [0, 1, 2, 3, 4]
    torch.testing.assert_close(found[:, 1].float(), share)


def test_density_of_the_mixture() -> None:
    mixture = Mixture(*(torch.tensor(v, dtype=torch.float64) for v in ([2.0, 5.0], [3.0, 1.5], [0.4, 0.6])))
    x = np.linspace(0.05, 0.95, 7)
    joint = np.stack([0.4 * stats.beta(2, 3).pdf(x), 0.6 * stats.beta(5, 1.5).pdf(x)], axis=1)
    same(mixture.log_joint(torch.from_numpy(x)).exp(), joint, sums=8, size=10)
    found = mixture.log_joint(torch.from_numpy(x)).softmax(dim=1).numpy()
    same(found, joint / joint.sum(axis=1, keepdims=True), sums=8, size=10)


def test_fit_finds_well_separated_components() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.beta(20, 180, 400), rng.beta(100, 100, 400), rng.beta(180, 20, 400)])
    mixture = fit(torch.from_numpy(rng.permutation(x)))
    np.testing.assert_allclose(np.sort(mixture.mean.numpy()), [0.1, 0.5, 0.9], atol=0.01)
    np.testing.assert_allclose(mixture.weight.numpy(), 1 / 3, atol=0.02)


def test_clusters_of_separate_groups() -> None:
    x = torch.tensor([0.1, 0.5, 0.9, 0.11, 0.52, 0.88], dtype=torch.float64)
    label = clusters(x, 3)
    assert label.tolist() == [0, 1, 2, 0, 1, 2]


def test_clustered_shares_have_few_values_near_their_own() -> None:
    share = torch.from_numpy(np.random.default_rng(1).beta(2, 2, 500))
    found = clustered(share, 3)
    assert found.unique().numel() == 3
    assert (found - share).abs().max() < 0.4
    assert torch.equal(clustered(torch.full((9,), 0.3)), torch.full((9,), 0.3).double())
