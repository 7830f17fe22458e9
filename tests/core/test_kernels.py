"""Kernels are densities on (0, 1): they integrate to one, weigh what they say, and refuse what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta as scipy_beta

from tracer.core.errors import UserError
from tracer.core.kernels import KERNELS, Beta, Early, Exponential, Kernel, Late, Triangular, Uniform, family
from tracer.core.teachers import EMA, WMA
from tracer.methods.base import method

DENSITIES = [
    Beta(),
    Beta(0.2),
    Beta(2, 5),
    Uniform(),
    Early(),
    Early(3),
    Late(),
    Late(0.5),
    Triangular(),
    Triangular(0.2),
]

shapes = st.floats(0.05, 20)
times = st.floats(1e-6, 1 - 1e-6)


@pytest.mark.parametrize("kernel", DENSITIES, ids=repr)
def test_a_kernel_integrates_to_one(kernel: Kernel) -> None:
    area = sum(quad(kernel, low, high, limit=200)[0] for low, high in [(0, 0.2), (0.2, 0.5), (0.5, 1)])
    assert area == pytest.approx(1, abs=1e-6)


@given(shapes, shapes, times)
def test_beta_is_the_beta_density(a: float, b: float, t: float) -> None:
    assert Beta(a, b)(t) == pytest.approx(scipy_beta.pdf(t, a, b), rel=1e-9)


@given(shapes, times)
def test_one_shape_makes_beta_symmetric(a: float, t: float) -> None:
    assert Beta(a)(t) == pytest.approx(Beta(a)(1 - t), rel=1e-8)
    assert Beta(a)(t) == Beta(a, a)(t)


def test_beta_one_half_is_the_arcsine_law() -> None:
    for t in (0.001, 0.3, 0.5, 0.9):
        assert Beta(0.5)(t) == pytest.approx(1 / (math.pi * math.sqrt(t * (1 - t))))


def test_beta_one_is_uniform() -> None:
    assert [Beta(1)(t) for t in (0.1, 0.5, 0.9)] == pytest.approx([1, 1, 1])


@given(st.floats(0.1, 5), times)
def test_early_is_late_backwards(power: float, t: float) -> None:
    assert Early(power)(t) == pytest.approx(Late(power)(1 - t), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "mean"),
    [(Uniform(), 1 / 2), (Early(), 1 / 3), (Late(), 2 / 3), (Late(3), 4 / 5), (Triangular(0.2), 0.4)],
)
def test_where_the_weight_lies(kernel: Kernel, mean: float) -> None:
    """E[t] is (p+1)/(p+2) for a power p and (0 + peak + 1)/3 for a triangle."""
    low, high = (quad(lambda t: t * kernel(t), *ends)[0] for ends in ((0, 0.2), (0.2, 1)))
    assert low + high == pytest.approx(mean)


def test_triangular_peaks_where_it_says() -> None:
    grid = np.linspace(0.001, 0.999, 999)
    assert grid[np.argmax([Triangular(0.3)(t) for t in grid])] == pytest.approx(0.3)


def test_exponential_counts_steps() -> None:
    """α₀ = 1 and α_k = (1 − ρ) ρ^(−k), read at t_k = (k + ½)/(T + 1)."""
    rho, steps = 0.9, 20
    kernel = Exponential(rho, steps)
    values = [kernel((k + 0.5) / (steps + 1)) for k in range(steps + 1)]
    assert values == pytest.approx([1.0, *((1 - rho) * rho**-k for k in range(1, steps + 1))], rel=1e-12)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Beta(0), "a=0"),
        (lambda: Beta(1, -2), "b=-2"),
        (lambda: Early(-1), "-1"),
        (lambda: Late(-3), "-3"),
        (lambda: Triangular(0), "not 0"),
        (lambda: Triangular(1), "not 1"),
        (lambda: Exponential(1.0, 10), "1.0"),
        (lambda: Exponential(0.5, 2000), "EMA"),  # 2^2000 is more than a float holds
    ],
)
def test_what_is_no_kernel_is_refused(make, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


def test_every_kernel_has_a_name() -> None:
    assert set(KERNELS.values()) == {Beta, Uniform, Early, Late, Triangular, Exponential}


@pytest.mark.parametrize(
    ("spelling", "kernel"),
    [
        ("beta", Beta(0.5)),
        ("uniform", Uniform()),
        ("early", Early()),
        ("early:3", Early(3)),
        ("late:0.5", Late(0.5)),
        ("triangular:0.2", Triangular(0.2)),
    ],
)
def test_a_family_is_one_word(spelling: str, kernel: Kernel) -> None:
    assert family(spelling)(10) == kernel
    assert method("tracer", kernel=spelling).stages[0].policy(10) == WMA(kernel)


def test_every_family_can_be_asked_of_tracer_and_of_its_recipe() -> None:
    from tracer.recipes.ablation import kernels

    assert {run.options["kernel"] for run in kernels(seeds=1).experiments} == set(KERNELS)
    for name in KERNELS:
        policy = method("tracer", kernel=name, every=3).stages[0].policy(40)
        assert isinstance(policy, WMA)
        assert type(policy.kernel) is KERNELS[name]
        assert policy.every == 3


@pytest.mark.parametrize("horizon", [0.05, 0.5])
def test_the_exponential_family_moves_as_the_ema_of_its_horizon(horizon: float) -> None:
    steps, kernel = 50, f"exponential:{horizon}"
    policy, ema = method("tracer", kernel=kernel).stages[0].policy(steps), EMA(horizon=horizon)
    assert policy is not None
    mass = policy.start(steps)
    for step in range(1, steps + 1):
        far, mass = policy.move(policy.tick(mass, step, steps), step, steps)
        assert far == pytest.approx(ema.move(ema.start(steps), step, steps)[0], rel=1e-9)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"kernel": "unifrom"}, "unknown kernel 'unifrom': did you mean uniform"),
        ({"kernel": "late:much"}, "kernel late:much: could not convert"),
        ({"kernel": "early:-2"}, "kernel early:-2: a power kernel needs a power above"),
        ({"kernel": "triangular:1"}, "peak inside"),
        ({"kernel": "exponential:0"}, "horizon of an EMA"),
        ({"kernel": "exponential:nan"}, "horizon of an EMA"),
        ({"kernel": "beta:2"}, "its shape is --beta"),
        ({"kernel": "uniform:2"}, "it has no shape"),
        ({"kernel": "late", "beta": 0.2}, "shape of the kernel beta, and the kernel is late"),
        ({"beta": -1.0}, "positive shapes"),
    ],
)
def test_a_kernel_that_is_none_is_refused_by_name(asked: dict[str, object], why: str) -> None:
    with pytest.raises(UserError, match=why):
        method("tracer", **asked)
