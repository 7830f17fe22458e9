"""CKA and SVCCA: equal to direct float64 computation, invariant where theory says so, the same when streamed."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from closeness import same
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tracer.analysis import Moments, canonical_correlations, hsic, linear_cka, minibatch_cka, svcca


def views(n: int, p: int, q: int, seed: int = 0, shared: float = 0.7) -> tuple[Tensor, Tensor]:
    """Two views that share some of what they show, far from the origin."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, p, generator=generator, dtype=torch.float64)
    mix = torch.randn(p, q, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, q, generator=generator, dtype=torch.float64)
    return x + 3, shared * x @ mix + (1 - shared) * noise - 7


def moments(*batches: tuple[Tensor, Tensor]) -> Moments:
    seen = Moments()
    for x, y in batches:
        seen.add(x, y)
    return seen


def rotation(d: int) -> Tensor:
    return torch.linalg.qr(
        torch.randn(d, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    ).Q


def test_hsic_is_the_u_statistic() -> None:
    """The mean over distinct i, j, q, r of K_ij (M_ij + M_qr − 2 M_iq), written out."""
    x, y = views(7, 3, 2)
    k, m = x @ x.T, y @ y.T
    terms = [k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q]) for i, j, q, r in permutations(range(7), 4)]
    same(hsic(k, m), torch.stack(terms).mean(), sums=7**4, size=float(k.abs().max() * m.abs().max()))


def test_hsic_of_independent_views_is_zero_on_average() -> None:
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(2000):
        x = torch.randn(8, 3, generator=generator, dtype=torch.float64)
        y = torch.randn(8, 3, generator=generator, dtype=torch.float64)
        found.append(hsic(x @ x.T, y @ y.T))
    mean, error = torch.tensor(found).mean(), torch.tensor(found).std() / len(found) ** 0.5
    assert abs(float(mean)) < 4 * float(error)


@given(st.integers(4, 60), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_cka_from_sums_is_cka_from_gram_matrices(n: int, p: int, q: int, seed: int) -> None:
    x, y = views(n, p, q, seed)
    k, m = x @ x.T, y @ y.T
    first, second = hsic(k, k), hsic(m, m)
    if min(first, second) > 1e-6:  # smaller ones are the rest of larger terms that cancel
        cka = hsic(k, m) / (first * second) ** 0.5
        assert linear_cka(moments((x, y))) == pytest.approx(cka, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("sizes", [[90], [1, 89], [30, 30, 30], [7] * 12 + [6]])
def test_streaming_equals_full(sizes: list[int]) -> None:
    x, y = views(90, 6, 4)
    streamed = moments(*zip(x.split(sizes), y.split(sizes), strict=True))
    whole = moments((x, y))
    same(linear_cka(streamed), linear_cka(whole), sums=90 * 6, size=10)
    same(svcca(streamed), svcca(whole), sums=90 * 6, size=10)


def test_one_minibatch_is_the_whole_and_many_are_near() -> None:
    x, y = views(1500, 6, 4)
    whole = linear_cka(moments((x, y)))
    assert minibatch_cka([(x, y)]) == pytest.approx(whole, rel=1e-9)
    parts = zip(x.split(100), y.split(100), strict=True)
    assert minibatch_cka(parts) == pytest.approx(whole, abs=0.02)


@pytest.mark.parametrize("measure", [linear_cka, svcca])
def test_rotation_scale_and_shift_change_nothing(measure) -> None:
    x, y = views(80, 6, 4)
    moved = 5 * (x @ rotation(6)) - 11
    assert measure(moments((moved, y))) == pytest.approx(measure(moments((x, y))), rel=1e-9)
    assert measure(moments((y, x))) == pytest.approx(measure(moments((x, y))), rel=1e-9)
    assert measure(moments((x, moved))) == pytest.approx(1.0, abs=1e-9)


def test_svcca_with_all_directions_ignores_any_invertible_map_and_cka_does_not() -> None:
    x, y = views(80, 4, 4)
    stretched = x * torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=torch.float64)
    assert svcca(moments((stretched, y)), 1.0) == pytest.approx(svcca(moments((x, y)), 1.0), rel=1e-8)
    assert linear_cka(moments((stretched, x))) < 0.9


@pytest.mark.parametrize("keep", [0.9, 0.99, 1.0])
def test_svcca_is_svd_then_cca_written_out(keep: float) -> None:
    x, y = views(70, 8, 5)
    bases = []
    for view in (x, y):
        left, values, _ = torch.linalg.svd(view - view.mean(dim=0), full_matrices=False)
        share = values.square().cumsum(0) / values.square().sum()
        rank = min(int((share < keep - 1e-12).sum()) + 1, len(values))
        bases.append(left[:, :rank])
    wanted = torch.linalg.svdvals(bases[0].T @ bases[1])
    found = canonical_correlations(moments((x, y)), keep)
    torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-10)


def test_large_means_do_not_cost_digits() -> None:
    x, y = views(200, 5, 5)
    assert linear_cka(moments((x + 1e6, y - 1e6))) == pytest.approx(linear_cka(moments((x, y))), rel=1e-7)


def test_a_constant_layer_has_no_similarity() -> None:
    x, _ = views(20, 3, 3)
    assert linear_cka(moments((x, torch.ones(20, 2)))) != linear_cka(moments((x, torch.ones(20, 2))))  # NaN


def test_misuse_is_refused() -> None:
    x, y = views(20, 3, 3)
    with pytest.raises(ValueError, match="same samples"):
        moments((x, y[1:]))
    with pytest.raises(ValueError, match="4 samples or more"):
        linear_cka(moments((x[:3], y[:3])))
    with pytest.raises(ValueError, match=r"keep must lie in \(0, 1\]"):
        svcca(moments((x, y)), 1.5)
