"""The schedule in closed form, and who is decayed."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tracer.core.errors import UserError
from tracer.models.student import Student
from tracer.training.optim import Schedule, adamw


@given(st.floats(1e-8, 1), st.integers(0, 60), st.integers(1, 200))
def test_warm_up_then_cosine(peak: float, warmup: int, rest: int) -> None:
    steps = warmup + rest
    rates = [Schedule(peak, warmup, steps)(step) for step in range(steps)]
    expected = [peak * (t + 1) / warmup for t in range(warmup)]
    expected += [peak * 0.5 * (1 + math.cos(math.pi * (t - warmup) / rest)) for t in range(warmup, steps)]
    assert rates == pytest.approx(expected)
    assert max(rates) == pytest.approx(peak)
    assert all(rate > 0 for rate in rates)  # no step is wasted
    assert Schedule(peak, warmup, steps)(steps) == pytest.approx(0, abs=1e-15)


def test_the_paper_s_schedule() -> None:
    schedule = Schedule(1e-5, 500, 25_030)
    assert schedule(0) == pytest.approx(1e-5 / 500)
    assert schedule(499) == schedule(500) == pytest.approx(1e-5)
    assert schedule(500 + 24_530 // 2) == pytest.approx(5e-6, rel=1e-3)


def decays(student: Student, decay_on: Any) -> dict[str, float]:
    optimiser = adamw(student, 0.1, decay_on)
    decay = {id(p): group["weight_decay"] for group in optimiser.param_groups for p in group["params"]}
    return {name: decay[id(p)] for name, p in student.named_parameters() if id(p) in decay}


def test_decay_spares_biases_norms_and_the_temperature(student: Student) -> None:
    found = decays(student, "matrices")
    assert len(found) == len(list(student.parameters()))
    spared = {name for name, decay in found.items() if decay == 0}
    assert "clip.logit_scale" in spared
    assert {name for name in found if name.endswith("bias") or ".ln_" in name} <= spared
    assert {"clip.visual.proj", "clip.text_projection", "clip.visual.conv1.weight"}.isdisjoint(spared)


def test_decay_on_all_is_on_all(student: Student) -> None:
    assert set(decays(student, "all").values()) == {0.1}


def test_only_what_may_move_is_optimised(student: Student) -> None:
    student.requires_grad_(False)
    student.clip.visual.requires_grad_(True)
    assert all(name.startswith("clip.visual.") for name in decays(student, "matrices"))


def test_it_is_adamw() -> None:
    """Fused or not, three steps are the textbook's: decay, then lr · m̂ / (√v̂ + ε), with β = 0.9 and 0.999."""
    model = nn.Linear(3, 2).double()
    optimiser = adamw(model, 0.1)
    for group in optimiser.param_groups:
        group["lr"] = 0.01
    expected = [p.detach().clone() for p in model.parameters()]
    mean, square = [0.0, 0.0], [0.0, 0.0]
    for step in (1, 2, 3):
        optimiser.zero_grad()
        model(torch.full((1, 3), float(step), dtype=torch.float64)).square().sum().backward()
        optimiser.step()
        for i, p in enumerate(model.parameters()):
            assert p.grad is not None
            mean[i] = 0.9 * mean[i] + 0.1 * p.grad
            square[i] = 0.999 * square[i] + 0.001 * p.grad**2
            update = mean[i] / (1 - 0.9**step) / ((square[i] / (1 - 0.999**step)) ** 0.5 + 1e-8)
            expected[i] = expected[i] * (1 - 0.01 * (0.1 if p.ndim == 2 else 0.0)) - 0.01 * update
            torch.testing.assert_close(p.detach(), expected[i])
    assert optimiser.defaults["fused"]


def test_an_unknown_choice_is_refused() -> None:
    choice: Any = "matrix"
    with pytest.raises(UserError, match="did you mean matrices"):
        adamw(nn.Linear(1, 1), 0.1, choice)
