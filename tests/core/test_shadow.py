"""The shadow carries an average of any module, in precision that keeps it, through stops and starts."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import closeness
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.core.kernels import Beta
from tracer.core.shadow import Shadow
from tracer.core.teachers import EMA, WMA, Frozen


def moved(model: nn.Module, seed: int) -> nn.Module:
    """The model with other weights, as after an optimiser step."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter)
    return model


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))


def tensors(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_it_is_a_copy_in_eval_mode_without_gradients() -> None:
    model = network().train()
    shadow = Shadow(model, Frozen(), steps=3)
    assert not any(module.training for module in shadow.model.modules())
    assert not any(parameter.requires_grad for parameter in shadow.model.parameters())
    before = tensors(shadow.model)
    moved(model, 1)
    assert same(before, tensors(shadow.model))
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_its_output_is_a_constant_that_may_enter_a_graph() -> None:
    model = network()
    shadow = Shadow(model, EMA(momentum=0.5), steps=3)
    x = torch.randn(5, 3, requires_grad=True)
    taught = shadow(x)
    assert not taught.requires_grad
    assert torch.equal(taught, shadow(x))  # dropout is off
    (model(x) * taught).sum().backward()  # the product saves `taught` for its gradient
    assert x.grad is not None


@dataclass
class Output:
    logits: Tensor


class Lazy(nn.Module):
    """Returns a record of its own and keeps what it computed first, as rotary embeddings do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("table", None)

    def forward(self, x: Tensor) -> Output:
        if self.table is None:
            self.table = torch.arange(2.0) + 1
        return Output(x * self.weight * self.table)


def test_any_output_and_any_cache_will_do() -> None:
    model = Lazy()
    shadow = Shadow(model, EMA(momentum=0.5), steps=2)
    x = torch.ones(2, requires_grad=True)
    model(x)
    taught = shadow(x).logits
    (model(x).logits * taught).sum().backward()
    shadow.follow(moved(model, 0))  # copies the table, which was made while the shadow ran


def test_half_precision_models_have_an_fp32_shadow() -> None:
    model: Any = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(torch.bfloat16)
    shadow = Shadow(model, WMA(), steps=4)
    floating = [value for value in shadow.model.state_dict().values() if value.is_floating_point()]
    assert {value.dtype for value in floating} == {torch.float32}
    start = model[0].weight.detach().clone()
    moved(model, 1)
    far = shadow.follow(model)
    expected = torch.lerp(start.float(), model[0].weight.float(), far)
    assert torch.equal(shadow.model.get_parameter("0.weight"), expected)
    assert model[0].weight.dtype == torch.bfloat16
    assert Shadow(nn.Linear(2, 2).double(), WMA(), steps=4).model.weight.dtype == torch.float64


@pytest.mark.usefixtures("unchecked")  # for speed
def test_bf16_would_lose_the_average_and_fp32_does_not() -> None:
    """Mid-run moves are ω|θ − ψ| ≈ 3e-4 here, below half a bf16 step at 1 (2e-3): they round to nothing."""
    steps, size = 2000, 16
    path = 1 + torch.linspace(0, 1, steps + 1, dtype=torch.float64)[:, None] * torch.rand(size)
    model: Any = nn.Module()
    model.weight = nn.Parameter(path[0].float())
    shadow = Shadow(model, WMA(Beta(0.5)), steps=steps)
    exact, rounded, unmoved = path[0].clone(), path[0].bfloat16(), 0
    for now in path[1:]:
        model.weight.data = now.float()
        far = shadow.follow(model)
        exact = torch.lerp(exact, now, far)
        before, rounded = rounded, torch.lerp(rounded, now.bfloat16(), far)
        unmoved += torch.equal(before, rounded)
    gap = (path[-1] - exact).norm()
    assert (shadow.model.get_parameter("weight") - exact).norm() < 1e-3 * gap
    assert (rounded - exact).norm() > 0.2 * gap
    assert unmoved > 0.5 * steps


def test_batch_norm_statistics_are_copied_with_each_move() -> None:
    model = network().train()
    shadow = Shadow(model, EMA(momentum=0.5, every=2), steps=4)
    start = tensors(shadow.model)
    for step in range(1, 5):
        model(torch.randn(8, 3))
        shadow.follow(moved(model, step))
        if step % 2:
            continue
        for name in ("1.running_mean", "1.running_var", "1.num_batches_tracked"):
            assert torch.equal(shadow.model.state_dict()[name], model.state_dict()[name])
            assert not torch.equal(shadow.model.state_dict()[name], start[name])
    assert shadow.model.state_dict()["1.num_batches_tracked"] == 4


def test_batch_norm_statistics_are_averaged_on_request() -> None:
    model = network().train()
    shadow = Shadow(model, EMA(momentum=0.75), steps=3, buffers="average")
    mean = model.state_dict()["1.running_mean"].clone()
    for step in range(3):
        model(torch.randn(8, 3))
        shadow.follow(moved(model, step))
        mean = 0.75 * mean + 0.25 * model.state_dict()["1.running_mean"]
    closeness.same(shadow.model.state_dict()["1.running_mean"], mean, sums=6)
    assert shadow.model.state_dict()["1.num_batches_tracked"] == 3  # a counter has no average


def test_batch_norm_statistics_stay_as_pretrained_on_request() -> None:
    model = network().train()
    model(torch.randn(8, 3))
    shadow = Shadow(model, EMA(momentum=0.5), steps=3, buffers="keep")
    start = tensors(shadow.model)
    for step in range(3):
        model(torch.randn(8, 3))
        shadow.follow(moved(model, step))
    for name, tensor in shadow.model.state_dict().items():
        statistic = name.startswith("1.") and name not in ("1.weight", "1.bias")
        assert torch.equal(tensor, start[name]) == statistic


def test_frozen_leaves_statistics_alone() -> None:
    model = network().train()
    shadow = Shadow(model, Frozen(), steps=3)
    before = tensors(shadow.model)
    for step in range(3):
        model(torch.randn(8, 3))
        assert shadow.follow(moved(model, step)) == 0
    assert same(before, tensors(shadow.model))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.out.weight = self.into.weight


def test_shared_parameters_stay_shared_and_move_once() -> None:
    model = Tied()
    start = model.into.weight.detach().clone()
    shadow = Shadow(model, EMA(momentum=0.75), steps=1)
    shadow.follow(moved(model, 1))
    average: Any = shadow.model
    assert average.into.weight is average.out.weight
    closeness.same(average.into.weight.data, 0.75 * start + 0.25 * model.into.weight.data, sums=2)


class Odd(nn.Module):
    """A counter and a code book among the parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
        self.code = nn.Parameter(torch.zeros(2, dtype=torch.int8), requires_grad=False)


def test_integers_are_copied_and_complex_numbers_averaged() -> None:
    model = Odd()
    shadow = Shadow(model, EMA(momentum=0.5), steps=1)
    model.weight.data += 2j
    model.code.data += 7
    shadow.follow(model)
    assert shadow.model.get_parameter("code").tolist() == [7, 7]
    assert shadow.model.get_parameter("weight").tolist() == [1j, 1j]


def test_a_module_without_weights_is_followed_too() -> None:
    assert Shadow(nn.ReLU(), EMA(momentum=0.5), steps=1).follow(nn.ReLU()) == 0.5


def test_a_model_that_grew_is_refused() -> None:
    shadow = Shadow(nn.Sequential(nn.Linear(2, 2)), EMA(momentum=0.5), steps=1)
    with pytest.raises(ValueError, match=r"longer|shorter"):
        shadow.follow(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))


POLICIES = [
    WMA(),
    WMA(Beta(0.2), every=3),
    WMA(every=2, clock="updates"),
    EMA(horizon=0.3, ramp=0.5),
    Frozen(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("stop", [1, 4, 10])
def test_resuming_changes_no_bit(policy, stop: int) -> None:
    """Stopped mid-run, also between two moves, written down, and taken up by a shadow of another model."""
    steps = 12
    model, whole = network(), Shadow(network(), policy, steps=steps)
    saved, stopped_model = {}, {}
    for step in range(steps):
        if step == stop:
            state = whole.state_dict()
            saved = {**copy.deepcopy(state), "counters": json.loads(json.dumps(state["counters"]))}
            stopped_model = tensors(model)
        whole.follow(moved(model, step))
    resumed = Shadow(moved(network(), 99), policy, steps=steps)
    resumed.load_state_dict(saved)
    model = network()
    model.load_state_dict(stopped_model)
    for step in range(stop, steps):
        resumed.follow(moved(model, step))
    assert same(tensors(whole.model), tensors(resumed.model))
    assert (whole.step, whole.mass) == (resumed.step, resumed.mass)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (lambda: Shadow(network(), WMA(Beta(0.2)), steps=5), r"Beta\(a=0.5.*Beta\(a=0.2"),
        (lambda: Shadow(network(), WMA(every=2), steps=5), "every=2"),
        (lambda: Shadow(network(), EMA(momentum=0.9), steps=5), "EMA"),
        (lambda: Shadow(network(), WMA(), steps=6), "5 steps, not 6"),
        (lambda: Shadow(nn.Linear(3, 4), WMA(), steps=5), "do not fit the model"),
        (
            lambda: Shadow(nn.Sequential(*list(network())[:3], nn.Linear(4, 3)), WMA(), steps=5),
            "e.g. 3.weight",
        ),
    ],
)
def test_a_state_of_something_else_is_refused(other, named: str) -> None:
    state = Shadow(network(), WMA(), steps=5).state_dict()
    shadow = other()
    before = tensors(shadow.model)
    with pytest.raises(UserError, match=named):
        shadow.load_state_dict(state)
    assert same(before, tensors(shadow.model))


def state_of_version_01(shadow: Shadow) -> dict[str, Any]:
    """Version 0.1 wrote the kernel mass, which is now computed from the step."""
    state = shadow.state_dict()
    return {**state, "counters": {**state["counters"], "held": 3.0, "pending": 0.5}}


def test_a_state_of_version_01_resumes_unless_its_moves_were_others() -> None:
    model = network()
    for policy in (WMA(every=3), EMA(horizon=0.3), WMA(clock="updates")):
        whole, resumed = Shadow(model, policy, steps=7), Shadow(model, policy, steps=7)
        whole.follow(moved(model, 1))
        resumed.load_state_dict(state_of_version_01(whole))
        whole.follow(moved(model, 2)), resumed.follow(model)
        assert same(tensors(whole.model), tensors(resumed.model))
        assert whole.mass == resumed.mass
    released = Shadow(model, WMA(every=3, clock="updates"), steps=7)
    with pytest.raises(UserError, match=r"version 0\.1.*train again"):
        released.load_state_dict(state_of_version_01(released))


def test_a_kernel_that_is_a_function_resumes_in_another_process() -> None:
    """Its printed form holds a memory address, which is another one there."""

    def kernel() -> Any:
        return lambda t: 1 + t

    state = Shadow(network(), WMA(kernel()), steps=5).state_dict()
    assert "0x" not in state["policy"]
    kept_alive = [kernel() for _ in range(3)]
    Shadow(network(), WMA(kept_alive[-1]), steps=5).load_state_dict(state)


def test_the_recursion_serves_anybody_s_loop() -> None:
    """Ten steps of plain SGD: the shadow ends at the weighted sum of the weights that the loop went through."""
    model = nn.Linear(3, 1).double()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    policy = WMA(Beta(0.5))
    shadow = Shadow(model, policy, steps=10)
    path = [model.weight.detach().numpy().copy()]
    for _ in range(10):
        x = torch.randn(4, 3, dtype=torch.float64)
        (model(x) - shadow(x) + 1).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        shadow.follow(model)
        path.append(model.weight.detach().numpy().copy())
    alpha = np.array([policy.kernel((k + 0.5) / 11) for k in range(11)])
    expected = np.tensordot(alpha / alpha.sum(), np.array(path), axes=1)
    closeness.same(shadow.model.get_parameter("weight"), expected, sums=30)


def partly_frozen() -> nn.Sequential:
    model = network()
    model[0].requires_grad_(False)
    return model


def test_what_is_frozen_is_shared_and_not_saved() -> None:
    model = partly_frozen()
    shadow = Shadow(model, EMA(momentum=0.5), steps=3)
    assert shadow.shared == {"0.weight", "0.bias"}
    pairs = zip(model.state_dict().items(), shadow.model.state_dict().values(), strict=True)
    assert {name for (name, one), two in pairs if one.data_ptr() == two.data_ptr()} == shadow.shared
    assert shadow.state_dict()["model"].keys() == model.state_dict().keys() - shadow.shared
    Shadow(model, EMA(momentum=0.5), steps=3).load_state_dict(  # version 0.1 saved everything
        {**shadow.state_dict(), "model": shadow.model.state_dict()}
    )


def test_a_shared_teacher_is_a_full_one_to_the_bit() -> None:
    model = partly_frozen()
    shadow = Shadow(model, WMA(), steps=20)
    full = Shadow(copy.deepcopy(model).requires_grad_(True), WMA(), steps=20)
    for step in range(20):
        torch.manual_seed(step)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter += torch.randn_like(parameter)
        model(torch.randn(4, 3))
        shadow.follow(model), full.follow(model)
    assert same(tensors(shadow.model), tensors(full.model))


def test_a_parameter_that_is_trained_after_all_is_refused() -> None:
    model = partly_frozen()
    shadow = Shadow(model, EMA(momentum=0.5), steps=3)
    model.requires_grad_(True)
    with pytest.raises(ValueError, match=r"0\.weight was frozen"):
        shadow.follow(model)


def test_frozen_half_precision_is_copied_to_fp32() -> None:
    shadow = Shadow(partly_frozen().to(torch.bfloat16), EMA(momentum=0.5), steps=3)
    assert not shadow.shared
    assert shadow.model.get_parameter("0.weight").dtype == torch.float32


@pytest.mark.parametrize("policy", [WMA(), EMA(horizon=0.5), WMA(every=7)], ids=repr)
def test_norms_that_hardly_change_reach_the_average(policy) -> None:
    """A weight of 1 that drifts by 1e-4: a plain fp32 average of 2000 steps would be half of the way behind."""
    steps, drift = 2000, 1e-4
    norm = nn.LayerNorm(3)
    shadow, exact = Shadow(norm, policy, steps=steps), np.ones(3)
    for step in range(1, steps + 1):
        norm.weight.data.fill_(1 + drift * step / steps)
        weight = shadow.follow(norm)
        exact += weight * (norm.weight.detach().double().numpy() - exact)
    np.testing.assert_allclose(shadow.model.weight.numpy(), exact, rtol=0, atol=drift / 20)


def test_short_runs_are_averaged_without_remainders() -> None:
    """Their moves are large beside the rounding of fp32, and keep the bits of earlier versions."""
    norm = nn.LayerNorm(3)
    shadow, plain = Shadow(norm, WMA(), steps=80), torch.ones(3)
    for step in range(1, 81):
        norm.weight.data.fill_(1 + 1e-3 * step)
        plain.lerp_(norm.weight.data, shadow.follow(norm))
        assert not shadow.remainders
    assert torch.equal(shadow.model.weight, plain)
