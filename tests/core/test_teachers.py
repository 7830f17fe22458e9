"""The algebra of averages, in float64: every policy against the explicit weighted sum of the path it saw."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from closeness import same
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive
from torch import nn

from tracer.core.errors import UserError
from tracer.core.kernels import Beta, Early, Exponential, Kernel, Late, Uniform
from tracer.core.shadow import Shadow
from tracer.core.teachers import EMA, WMA, Frozen, Teacher, advance, replay

PAPER_STEPS = 25_030  # ten epochs of ImageNet at batch 512


class Point(nn.Module):
    """A model that is nothing but its weights."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(values))

    def become(self, values: np.ndarray) -> Point:
        self.weight.data = torch.tensor(values)
        return self


def averages(policy: Teacher, path: np.ndarray) -> np.ndarray:
    """The shadow's weights after each step of `path`; row 0 is where it starts."""
    model = Point(path[0])
    shadow = Shadow(model, policy, steps=len(path) - 1)
    rows = [path[0]]
    for values in path[1:]:
        shadow.follow(model.become(values))
        rows.append(shadow.model.weight.numpy().copy())  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    return np.array(rows)


def weights(policy: Teacher, steps: int) -> np.ndarray:
    """Row t: the weight of each iterate in the average after step t, read off a path of unit vectors."""
    return averages(policy, np.eye(steps + 1))


def masses(policy: Teacher, steps: int) -> np.ndarray:
    """θ₀'s weight in the average after each step, from the policy alone: each move keeps 1 − far of it."""
    mass, kept = policy.start(steps), [1.0]
    for step in range(1, steps + 1):
        weight, mass = advance(policy, mass, step, steps)
        kept.append(kept[-1] * (1 - weight))
    return np.array(kept)


def visited(policy: Teacher, clock: str, steps: int) -> list[int]:
    """0 and the steps after which a teacher moves: every N-th by progress, 1, N + 1, … as released; and the last."""
    first = policy.every if clock == "progress" else 1
    return [0, *sorted({*range(first, steps + 1, policy.every), steps})]


def grid(kernel: Kernel, steps: int) -> np.ndarray:
    """α_k = κ((k + ½)/(T + 1)) of every iterate."""
    return np.array([kernel((k + 0.5) / (steps + 1)) for k in range(steps + 1)])


def tabled(values: list[float]) -> Kernel:
    """The kernel with these values on the grid t_k = (k + ½)/(T + 1)."""
    return lambda t: values[round(t * len(values) - 0.5)]


def explicit(policy: WMA, alpha: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Σ w_j θ_j / Σ w_j over the visited iterates, after each step, with no recursion."""
    rows = []
    ends = visited(policy, policy.clock, len(path) - 1)
    for t in range(len(path)):
        seen = [end for end in ends if end <= t]
        if policy.clock == "updates":  # the j-th visited iterate weighs α_j
            w = alpha[: len(seen)]
        else:  # … or the kernel mass of the interval that it ends
            w = np.array([alpha[low + 1 : high + 1].sum() for low, high in pairwise([-1, *seen])])
        rows.append((w[:, None] * path[seen]).sum(axis=0) / w.sum())
    return np.array(rows)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["progress", "updates"]))
def test_wma_is_the_explicit_weighted_sum(data: st.DataObject, clock) -> None:
    """For any kernel and any `every`, whether or not it divides the steps, at every step, under both clocks."""
    alpha = data.draw(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=25))
    policy = WMA(tabled(alpha), data.draw(st.integers(1, len(alpha) - 1)), clock)
    path = np.random.default_rng(data.draw(st.integers(0, 2**32))).normal(size=(len(alpha), 3))
    same(averages(policy, path), explicit(policy, np.array(alpha), path), sums=3 * len(alpha))


def test_uniform_kernel_is_the_running_mean() -> None:
    path = np.random.default_rng(0).normal(size=(200, 5))
    mean = np.cumsum(path, axis=0) / np.arange(1, 201)[:, None]
    same(averages(WMA(Uniform()), path), mean, sums=3 * 200)
    same(averages(WMA(Beta(1)), path), mean, sums=3 * 200)


@pytest.mark.parametrize("momentum", [0.05, 0.5, 0.9, 0.99])
def test_exponential_kernel_is_ema(momentum: float) -> None:
    path = np.random.default_rng(1).normal(size=(151, 4))
    ema = averages(EMA(momentum=momentum), path)
    same(averages(WMA(Exponential(momentum, 150)), path), ema, sums=3 * 151, size=150)  # exponents
    by_hand = path[0]
    for values in path[1:]:
        by_hand = momentum * by_hand + (1 - momentum) * values
    same(ema[-1], by_hand, sums=3 * 151)


def test_unrolled_weights_are_the_kernel() -> None:
    """Row t is α_0…α_t over their sum: all positive, θ₀'s too, and nothing on the future."""
    steps = 300
    t = (np.arange(steps + 1) + 0.5) / (steps + 1)
    alpha = 1 / np.sqrt(t * (1 - t))
    got = weights(WMA(Beta(0.5)), steps)
    expected = np.tril(np.tile(alpha, (steps + 1, 1)))
    same(got, expected / expected.sum(axis=1, keepdims=True), sums=3 * steps)
    assert (got[:, 0] > 0).all()


@settings(max_examples=30)
@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40))
def test_the_pretrained_weights_keep_their_share(alpha: list[float]) -> None:
    """θ₀'s mass is α₀/Σα at every step, so it never reaches zero."""
    kept = masses(WMA(tabled(alpha)), len(alpha) - 1)
    np.testing.assert_allclose(kept, alpha[0] / np.cumsum(alpha), rtol=1e-9)


@pytest.mark.usefixtures("unchecked")  # for speed
def test_figures_of_the_paper_s_teacher() -> None:
    """ω₁ = 1/(1 + √3) in the limit of many steps, for α ∝ k^(−½) near the start; METHODS has the others."""
    policy = WMA(Beta(0.5))
    first, _ = policy.move(policy.tick(policy.start(PAPER_STEPS), 1, PAPER_STEPS), 1, PAPER_STEPS)
    assert first == pytest.approx(1 / (1 + math.sqrt(3)), abs=1e-4)
    assert first == pytest.approx(0.366, abs=5e-4)
    kept = masses(policy, PAPER_STEPS)
    for share, mass in [(0.001, 0.147), (0.01, 0.045), (0.1, 0.014), (0.5, 0.0057), (1.0, 0.00285)]:
        assert kept[round(share * PAPER_STEPS)] == pytest.approx(mass, rel=0.03)
    alpha = grid(policy.kernel, PAPER_STEPS)
    alpha /= alpha.sum()
    tenth = PAPER_STEPS // 10
    assert alpha[:tenth].sum() == pytest.approx(0.204, abs=2e-3)
    assert alpha[-tenth:].sum() == pytest.approx(0.204, abs=2e-3)
    assert (alpha * np.arange(PAPER_STEPS, -1, -1)).sum() / PAPER_STEPS == pytest.approx(0.5, abs=1e-6)


@pytest.mark.usefixtures("unchecked")  # for speed
def test_rare_moves_keep_the_average_and_the_released_clock_does_not() -> None:
    """A path of 5 000 steps, θ(u) = 1 − exp(−10u), whose arcsine mean is 1 − e⁻⁵ I₀(5) = 0.816.

    With the progress clock a move every N steps gives each interval's mass to the iterate at its end. The path
    rises, so the average may only rise, and by no more than Σ mass · rise of the path: an end-point error, which
    vanishes with N (0.818, 0.820, 0.837, 0.903 for N = 1, 10, 100, 500). Counting moves instead reads only the
    first T/N of the kernel, where it falls: the average sinks toward θ₀ (0.727, 0.697, 0.594), and at N = 500 more
    than a third of it is θ₀ and θ₁, which should have 1 %.
    """
    steps = 5000
    path = (1 - np.exp(-10 * np.arange(steps + 1) / steps))[:, None]
    alpha = grid(Beta(0.5), steps)
    exact = (alpha * path[:, 0]).sum() / alpha.sum()
    assert exact == pytest.approx(1 - ive(0, 5), abs=0.002)  # a sum of 5 000 instead of the integral
    for every, value in {1: 0.818, 10: 0.820, 100: 0.837, 500: 0.903}.items():
        found = averages(WMA(every=every), path)[-1, 0]
        ends = np.arange(0, steps + 1, every)
        rise = (np.diff(np.cumsum(alpha)[ends]) * np.diff(path[ends, 0])).sum() / alpha.sum()
        assert -1e-12 <= found - exact <= rise + 1e-12
        assert found == pytest.approx(value, abs=5e-4)
    for every, value in {10: 0.727, 100: 0.697, 500: 0.594}.items():
        policy = WMA(every=every, clock="updates")
        found = averages(policy, path)[-1, 0]
        ends = visited(policy, "updates", steps)
        used = alpha[: len(ends)]
        assert found == pytest.approx((used * path[ends, 0]).sum() / used.sum(), abs=1e-12)
        assert found == pytest.approx(value, abs=5e-4)
    assert weights(WMA(every=500, clock="updates"), steps)[-1, :2].sum() == pytest.approx(0.353, abs=1e-3)
    assert masses(WMA(every=500), steps)[-1] == pytest.approx(0.0064, abs=1e-4)


@settings(max_examples=30)
@given(st.floats(0.01, 2), st.integers(1, 20), st.integers(5, 20))
def test_horizon_is_memory_as_a_share_of_training(horizon: float, every: int, moves: int) -> None:
    """After the horizon, e⁻¹ of the past is left, however often the average moves."""
    steps = every * moves
    kept = masses(EMA(horizon=horizon, every=every), steps)
    np.testing.assert_allclose(
        kept[::every], np.exp(-np.arange(0, steps + 1, every) / (horizon * steps)), atol=1e-12
    )


def momentum(policy: EMA, step: int, steps: int) -> float:
    return 1 - policy.move(policy.start(steps), step, steps)[0]


def test_ramp_rises_linearly_and_stays() -> None:
    """CaRot: every 500 steps, momentum from 0.05 to 0.9 over the first fifth; the last 30 steps are 6 % of a move."""
    policy = EMA(momentum=0.9, every=500, ramp=0.2)
    fifth = PAPER_STEPS / 5
    for step in (500, 1500, 2500, 4500, 5000):
        assert momentum(policy, step, PAPER_STEPS) == pytest.approx(0.05 + 0.85 * step / fifth)
    assert momentum(policy, 0, PAPER_STEPS) == pytest.approx(0.05)
    for step in (5500, 25_000):
        assert momentum(policy, step, PAPER_STEPS) == pytest.approx(0.9)
    assert momentum(policy, PAPER_STEPS, PAPER_STEPS) == pytest.approx(0.9**0.06)
    assert momentum(EMA(momentum=0.9), 1, PAPER_STEPS) == pytest.approx(0.9)  # no ramp, no rise


def test_frozen_never_moves() -> None:
    path = np.random.default_rng(2).normal(size=(50, 3))
    assert (averages(Frozen(), path) == path[0]).all()


@pytest.mark.parametrize("every", [2, 3, 7, 30])
def test_between_moves_nothing_moves(every: int) -> None:
    path = np.random.default_rng(3).normal(size=(31, 2))
    for policy in (WMA(every=every), WMA(every=every, clock="updates"), EMA(momentum=0.5, every=every)):
        rows = averages(policy, path)
        moved = visited(policy, getattr(policy, "clock", "progress"), 30)
        for step in range(1, 31):
            assert (step in moved) == bool((rows[step] != rows[step - 1]).any())


@pytest.mark.parametrize(("steps", "every"), [(60, 50), (24, 10), (7, 2), (9, 9)])
def test_the_last_interval_reaches_the_average(steps: int, every: int) -> None:
    """However long it is: by progress with the kernel mass of its steps, in an EMA with the momentum of its steps."""
    rest = steps % every or every
    alpha = grid(Beta(0.5), steps)
    last = weights(WMA(every=every), steps)[-1]
    assert last[-1] == pytest.approx(alpha[-rest:].sum() / alpha.sum(), rel=1e-12)
    kept = masses(EMA(horizon=0.3, every=every), steps)
    assert kept[-1] == pytest.approx(math.exp(-1 / 0.3), rel=1e-12)
    assert weights(EMA(momentum=0.8, every=every), steps)[-1, -1] == pytest.approx(1 - 0.8 ** (rest / every))
    assert weights(WMA(every=every, clock="updates"), steps)[-1, -1] > 0


@pytest.mark.parametrize(
    "policy", [WMA(every=21), WMA(every=21, clock="updates"), EMA(horizon=0.3, every=50)]
)
def test_an_interval_longer_than_training_is_refused(policy: Teacher) -> None:
    with pytest.raises(
        UserError, match=f"every {policy.every} steps and training has 20: use --every 20 or less"
    ):
        Shadow(Point(np.zeros(1)), policy, steps=20)


@pytest.mark.parametrize("kernel", [Beta(1e4), Beta(1e4, 3e3), Early(1e4), Late(1e4), Beta(1e-4)], ids=repr)
def test_kernels_beyond_the_range_of_a_float_are_weighed(kernel: Kernel) -> None:
    """ω_k = α_k / Σ_{j≤k} α_j with logarithms: α₀ of β = 10⁴ is e^(−38 000), and its ratio to α₁ is what counts."""
    steps = 100
    t = (np.arange(steps + 1) + 0.5) / (steps + 1)
    a, b = {
        Beta: lambda: (kernel.a - 1, kernel.right - 1),  # pyright: ignore[reportAttributeAccessIssue]
        Early: lambda: (0.0, kernel.power),  # pyright: ignore[reportAttributeAccessIssue]
        Late: lambda: (kernel.power, 0.0),  # pyright: ignore[reportAttributeAccessIssue]
    }[type(kernel)]()
    logs = a * np.log(t) + b * np.log1p(-t)
    expected = np.exp(logs - np.logaddexp.accumulate(logs))
    policy, mass = WMA(kernel), WMA(kernel).start(steps)
    for step in range(1, steps + 1):
        weight, mass = advance(policy, mass, step, steps)
        assert weight == pytest.approx(expected[step], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: EMA(), "either"),
        (lambda: EMA(momentum=0.9, horizon=0.2), "either"),
        (lambda: EMA(momentum=1.5), "1.5"),
        (lambda: EMA(horizon=0), "positive"),
        (lambda: EMA(momentum=0.9, ramp=2), "ramp"),
        (lambda: EMA(momentum=0.9, every=0), "every 0"),
        (lambda: WMA(every=0), "every 0"),
        (lambda: Shadow(Point(np.zeros(1)), Frozen(), steps=0), "not 0"),
        (lambda: WMA(lambda t: -1.0).start(10), "negative"),
        (lambda: WMA(lambda t: math.nan).start(10), "nan"),
        (lambda: WMA(lambda t: math.inf).start(10), "inf"),
    ],
)
def test_what_is_no_policy_is_refused(make: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


@pytest.mark.usefixtures("unchecked")
def test_unknown_words_are_refused() -> None:
    with pytest.raises(ValueError, match="progress or updates"):
        WMA(clock="steps")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="copy, average or keep"):
        Shadow(Point(np.zeros(1)), Frozen(), steps=1, buffers="hold")  # pyright: ignore[reportArgumentType]


def test_one_step_too_many_is_named() -> None:
    model = Point(np.zeros(1))
    shadow = Shadow(model, WMA(), steps=2)
    shadow.follow(model)
    shadow.follow(model)
    with pytest.raises(ValueError, match="laid out for 2 steps"):
        shadow.follow(model)


def test_a_kernel_that_starts_at_zero_lets_the_start_go() -> None:
    """Algorithm 1 of the paper, as printed: the first move copies the student and θ₀ is gone for ever."""
    path = np.array([[1.0], [5.0], [7.0]])
    rows = averages(WMA(tabled([0.0, 1.0, 1.0])), path)
    np.testing.assert_allclose(rows[:, 0], [1, 5, 6])


@pytest.mark.parametrize("kernel", [Beta(), Beta(0.2), Uniform()], ids=repr)
def test_mean_age_is_the_weighted_mean_of_ages(kernel: Kernel) -> None:
    steps = 30
    for step in (1, 7, 30):
        weights = [kernel((k + 0.5) / (steps + 1)) for k in range(step + 1)]
        wanted = sum(w * (step - k) for k, w in enumerate(weights)) / sum(weights)
        assert replay(WMA(kernel), step, steps)[0] == pytest.approx(wanted)


def test_mean_age_of_those_that_never_and_that_always_forget_alike() -> None:
    """A frozen teacher ages with time; an EMA of momentum m comes to m/(1−m); a teacher that copies has none."""
    assert replay(Frozen(), 40, 100)[0] == 40
    assert replay(EMA(momentum=0.9), 400, 400)[0] == pytest.approx(9)
    assert replay(EMA(momentum=0.0), 40, 100)[0] == 0


@pytest.mark.parametrize("policy", [WMA(every=3), WMA(every=4, clock="updates"), EMA(horizon=0.3), Frozen()])
def test_a_shadow_knows_its_age_before_and_after_a_stop(policy: Teacher) -> None:
    model = nn.Linear(2, 1)
    shadow = Shadow(model, policy, steps=20)
    for step in range(1, 14):
        shadow.follow(model)
        assert shadow.age == replay(policy, step, 20)[0]
    again = Shadow(model, policy, steps=20)
    again.load_state_dict(shadow.state_dict())
    assert again.age == shadow.age
