"""The bound of the tests' comparisons lets rounding pass in every type, and no mistake of one in ten thousand."""

from __future__ import annotations

import pytest
import torch
from closeness import bound, length, near, same, smooth_steps
from torch import nn

from tracer.core.batch import Batch
from tracer.models.student import Student
from tracer.training import optim

WRONG = 1 + 1e-4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 10, 1000, 100_000])
def test_sums_in_any_order_are_the_same(dtype: torch.dtype, count: int) -> None:
    """One number behind the other, which no processor does as badly."""
    numbers = torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    forth, back = (
        torch.stack([part[-1] for part in (each.cumsum(0), each.flip(0).cumsum(0))])
        for each in (numbers, numbers.flip(0))
    )
    same(forth, back, count)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_wrong_factor_is_seen_behind_a_whole_model(shared_student: Student, dtype: torch.dtype) -> None:
    pixels = torch.randint(256, (3, 3, 28, 28), dtype=torch.uint8)
    found = shared_student.embed_image(pixels).to(dtype)
    sums = length(shared_student)
    assert near(found, found.clone(), sums)
    assert not near(found, WRONG * found, sums)
    assert not near({"a": found, "b": found}, {"a": found, "b": WRONG * found}, sums)
    assert bound(sums, 1.0, dtype) < WRONG - 1


@pytest.mark.parametrize("broken", ["weight", "row", "sign", "type"])
def test_breakages_of_a_gradient_are_seen(student: Student, broken: str) -> None:
    """A weight that is off by a ten thousandth, a row less, a sign, a lower precision; with as much as one image."""
    student.double()
    images = torch.rand(2, 3, 28, 28, dtype=torch.float64)

    def gradients(images: torch.Tensor) -> dict[str, torch.Tensor]:
        student.zero_grad()
        student(Batch(images), frozenset()).image[:, 0].sum().backward()
        return {name: p.grad.clone() for name, p in student.named_parameters() if p.grad is not None}

    expected = gradients(images)
    assert near(gradients(images.flip(0)), expected, length(student))
    if broken == "weight":
        student.clip.visual.proj.data *= WRONG
    found = gradients(images[:1] if broken == "row" else images)
    if broken == "sign":
        found["clip.visual.proj"].neg_()
    if broken == "type":
        found["clip.visual.proj"] = found["clip.visual.proj"].float().double()
    assert not near(found, expected, length(student))


def test_other_names_shapes_and_nan_are_never_the_same() -> None:
    ones = torch.ones(3)
    assert not near({"a": ones}, {"b": ones}, 1)
    assert not near(ones, torch.ones(1), 1)
    assert not near(ones, ones * float("nan"), 1)
    assert not near(ones * float("nan"), ones * float("nan"), 1)
    assert near([0.5, 1], (0.5, 1), 1)


def test_steps_are_smooth_where_gradients_are_nothing_but_rounding() -> None:
    def moved(gradient: float) -> float:
        layer = nn.Linear(1, 1, bias=False).double()
        start = layer.weight.item()
        optimiser = optim.adamw(layer, 0.0)
        layer.weight.grad = torch.full_like(layer.weight, gradient)
        optimiser.param_groups[0]["lr"] = 1e-3
        optimiser.step()
        return abs(layer.weight.item() - start)

    assert moved(1e-7) > 1e-4
    with smooth_steps():
        assert moved(1e-7) < 1e-9
        assert moved(1.0) == pytest.approx(5e-4)
    assert moved(1e-7) > 1e-4
