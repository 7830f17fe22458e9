"""The paper's teachers at its own length, T = 25 030: masses and ages that were computed or published elsewhere.

Everything is computed a second time in NumPy, from the kernel and the list of moves, without the policies.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tracer.core.kernels import Beta
from tracer.core.teachers import EMA, WMA, Frozen, Teacher, advance, replay
from tracer.methods.base import method

STEPS = 25_030  # ten epochs of ImageNet at batch 512, the last partial batch of each included
INTERVALS = (1, 2, 5, 10, 50, 100, 500, 1000, 2500)  # of the paper's ablation

pytestmark = pytest.mark.usefixtures("unchecked")  # for speed


def moves(policy: Teacher, steps: int = STEPS) -> np.ndarray:
    """ω after each step; row 0 is 1, the start."""
    weights, mass = np.ones(steps + 1), policy.start(steps)
    for step in range(1, steps + 1):
        weights[step], mass = advance(policy, mass, step, steps)
    return weights


def final_masses(policy: Teacher) -> np.ndarray:
    """The weight of each iterate in the average after the last step."""
    weights = moves(policy)
    later = np.cumprod(1 - weights[::-1])[::-1]  # Π_{j≥k} (1 − ω_j)
    return weights * np.append(later[1:], 1.0)


def defined_masses(beta: float, every: int, clock: str) -> np.ndarray:
    """The same from the definition: kernel values on the visited iterates, over their sum."""
    t = (np.arange(STEPS + 1) + 0.5) / (STEPS + 1)
    alpha = np.exp((beta - 1) * (np.log(t) + np.log1p(-t)))
    ends = sorted({*range(every if clock == "progress" else 1, STEPS + 1, every), STEPS})
    masses = np.zeros(STEPS + 1)
    masses[0] = alpha[0]
    if clock == "progress":
        masses[ends] = np.diff(np.cumsum(alpha)[[0, *ends]])
    else:
        masses[ends] = alpha[1 : len(ends) + 1]
    return masses / masses.sum()


@pytest.mark.parametrize("clock", ["progress", "updates"])
@pytest.mark.parametrize("every", INTERVALS)
def test_masses_and_age_at_every_published_interval(every: int, clock: str) -> None:
    policy = method("tracer", every=every, clock=clock).stages[0].policy(STEPS)
    assert policy is not None
    masses, expected = final_masses(policy), defined_masses(0.5, every, clock)
    np.testing.assert_allclose(masses, expected, rtol=1e-8, atol=1e-15)
    age = (expected * np.arange(STEPS, -1, -1)).sum()
    assert replay(policy, STEPS, STEPS)[0] == pytest.approx(age, rel=1e-9)


@pytest.mark.parametrize(("every", "mass"), [(500, 0.160), (2500, 0.338)])
def test_the_released_clock_keeps_the_start(every: int, mass: float) -> None:
    """Of θ₀ and θ₁ together, 16.0 % and 33.8 % are left; at every step it is 0.45 %."""
    assert final_masses(WMA(Beta(0.5), every, "updates"))[:2].sum() == pytest.approx(mass, abs=5e-4)
    assert final_masses(WMA(Beta(0.5), every))[:2].sum() == pytest.approx(0.00285, abs=1e-4)
    assert final_masses(WMA(Beta(0.5)))[:2].sum() == pytest.approx(0.0045, abs=1e-4)


def test_the_released_clock_moves_after_step_one_and_after_the_last() -> None:
    for every in (500, 2500):
        moved = np.flatnonzero(moves(WMA(Beta(0.5), every, "updates"))).tolist()
        assert moved == [0, *range(1, STEPS, every), STEPS]
        assert len(moved) - 1 == {500: 52, 2500: 12}[every]


def test_the_pretrained_weights_at_every_share_of_training() -> None:
    """ω₁ = 0.366; θ₀ has 14.7 % at 0.1 % of T, 4.5 % at 1 %, 1.4 % at 10 %, 0.57 % at 50 % and 0.285 % at the end."""
    weights = moves(WMA(Beta(0.5)))
    assert weights[1] == pytest.approx(0.366, abs=5e-4)
    left = np.cumprod(np.append(1.0, 1 - weights[1:]))
    for share, mass in [(0.001, 0.147), (0.01, 0.045), (0.1, 0.014), (0.5, 0.0057), (1.0, 0.00285)]:
        assert left[round(share * STEPS)] == pytest.approx(mass, rel=0.03)
    masses = final_masses(WMA(Beta(0.5)))
    tenth = STEPS // 10
    assert masses[:tenth].sum() == pytest.approx(0.204, abs=2e-3)
    assert masses[-tenth:].sum() == pytest.approx(0.204, abs=2e-3)
    assert replay(WMA(Beta(0.5)), STEPS, STEPS)[0] == pytest.approx(0.5 * STEPS, rel=1e-4)


@pytest.mark.parametrize("beta", [0.2, 0.5, 0.7, 0.9, 1.0, 1.5])
def test_every_published_shape(beta: float) -> None:
    np.testing.assert_allclose(
        final_masses(WMA(Beta(beta))), defined_masses(beta, 1, "progress"), rtol=1e-8, atol=1e-15
    )
    assert replay(WMA(Beta(beta)), STEPS, STEPS)[0] == pytest.approx(
        0.5 * STEPS, rel=1e-3
    )  # all are symmetric


@pytest.mark.parametrize(("every", "memory"), [(1, 10), (500, 5000)])
def test_the_ema_of_the_dynamics_figures(every: int, memory: int) -> None:
    """Momentum 0.05 → 0.9 over the first fifth: its memory, every/(1 − m), is 10 steps or a fifth of training."""
    policy = method("ema_sd", momentum=0.9, ramp=0.2, every=every).stages[0].policy(STEPS)
    assert policy == EMA(momentum=0.9, every=every, ramp=0.2, ramp_from=0.05)
    ends = [*range(every, STEPS + 1, every), *([STEPS] if STEPS % every else [])]
    age, last = 0.0, 0
    for end in ends:
        momentum = 0.05 + 0.85 * min(1.0, end / (0.2 * STEPS))
        age, last = (age + end - last) * momentum ** ((end - last) / every), end
    assert replay(policy, STEPS, STEPS)[0] == pytest.approx(age, rel=1e-9)
    assert age == pytest.approx(0.9 * memory, rel=0.05)  # moves arrive at age 0, so m/(1 − m) of an interval
    assert final_masses(policy)[0] < 1e-3


def test_an_ema_with_tracers_mean_age() -> None:
    """1 − m = 1/(0.5 T), m ≈ 0.99992: an EMA of horizon ½ forgets by e⁻² what TRACER's teacher never does."""
    policy = EMA(horizon=0.5)
    assert 1 - moves(policy)[1] == pytest.approx(0.99992, abs=1e-6)
    assert final_masses(policy)[0] == pytest.approx(math.exp(-2), rel=1e-9)
    assert replay(Frozen(), STEPS, STEPS)[0] == STEPS


@pytest.mark.parametrize(
    ("steps", "every", "lost"), [(25_030, 500, 0.02), (24_999, 2500, 0.20), (60, 50, 0.25)]
)
def test_the_end_of_training_is_in_the_average(steps: int, every: int, lost: float) -> None:
    """These are the shares of kernel mass that an average without the last, partial interval would not have."""
    t = (np.arange(steps + 1) + 0.5) / (steps + 1)
    alpha = 1 / np.sqrt(t * (1 - t))
    share = alpha[-(steps % every) :].sum() / alpha.sum()
    assert share == pytest.approx(lost, abs=0.02)
    assert moves(WMA(Beta(0.5), every), steps)[-1] == pytest.approx(share, rel=1e-9)
