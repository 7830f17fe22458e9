"""Model Stock against its formula in NumPy float64, for changes as small as those of real finetuning."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from closeness import same

from tracer.core.model_stock import By, cosine, stock
from tracer.merging.soup import uniform

SHAPES = {"matrix": (6, 40), "bias": (40,), "kernel": (4, 3, 2, 2), "scale": ()}


def by_formula(start: np.ndarray, models: list[np.ndarray], by: By) -> np.ndarray:
    """t · mean + (1 − t) · start with t = k c / (1 + (k − 1) c), c the mean cosine of the changes, for each row."""
    if by == "row" and start.ndim > 1:
        return np.stack(
            [by_formula(row, [model[i] for model in models], "tensor") for i, row in enumerate(start)]
        )
    changes = [(model - start).ravel() for model in models]
    cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in combinations(changes, 2)]
    c, k = float(np.clip(np.mean(cosines), 0, 1)), len(models)
    t = k * c / (1 + (k - 1) * c)
    return t * np.mean(models, axis=0) + (1 - t) * start


def changed(size: float, count: int) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
    """A start, and models whose changes have a common part: cosines near 0.8."""
    rng = np.random.default_rng(0)
    start = {name: np.asarray(rng.normal(size=shape)) for name, shape in SHAPES.items()}
    common = {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
    models = [
        {
            name: start[name]
            + size * (common[name] + 0.5 * rng.normal(size=shape)) / max(1, start[name].size) ** 0.5
            for name, shape in SHAPES.items()
        }
        for _ in range(count)
    ]
    return start, models


def tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.asarray(values)) for name, values in arrays.items()}


@pytest.mark.parametrize("by", ["tensor", "row"])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0])
def test_changes_of_every_size_are_merged_by_their_angle(size: float, count: int, by: By) -> None:
    """The length of a change says nothing about the angle: no lower bound on it belongs into the formula."""
    start, models = changed(size, count)
    merged, cosines = stock(tensors(start), [tensors(model) for model in models], by)
    for name, origin in start.items():
        expected = by_formula(origin, [model[name] for model in models], by) - origin
        np.testing.assert_allclose(merged[name].numpy() - origin, expected, rtol=1e-6, atol=1e-7 * size)
    assert min(cosines.values()) > 0.5


@pytest.mark.parametrize("by", ["tensor", "row"])
def test_single_precision_weights_that_hardly_change(by: By) -> None:
    """Changes of about 1e-5, of tensors and of rows, in weights of float32."""
    start, models = changed(1e-4, 2)
    coarse = {name: values.astype(np.float32) for name, values in start.items()}
    ends = [{name: values.astype(np.float32) for name, values in model.items()} for model in models]
    merged, _ = stock(tensors(coarse), [tensors(end) for end in ends], by)
    for name, origin in coarse.items():
        wide = [end[name].astype(np.float64) for end in ends]
        expected = by_formula(origin.astype(np.float64), wide, by)
        same(merged[name], expected, sums=1)  # rounded once


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-2])
def test_a_merge_is_rounded_once(size: float, dtype: torch.dtype) -> None:
    """The float64 value in the dtype of the weights, as near as that can be, for a stock and for a soup of five."""
    start, models = changed(size * SHAPES["matrix"][1], 5)
    coarse = {name: value.to(dtype) for name, value in tensors(start).items()}
    ends = [{name: value.to(dtype) for name, value in tensors(model).items()} for model in models]
    merged, soup = stock(coarse, ends)[0], uniform(ends)
    for name, origin in coarse.items():
        wide = [end[name].double().numpy() for end in ends]
        average = torch.from_numpy(np.asarray(np.mean(wide, axis=0)))
        torch.testing.assert_close(soup[name], average.to(dtype), rtol=0, atol=0)
        if any(torch.equal(end[name], origin) for end in ends):  # a change too small for the dtype
            continue
        expected = torch.from_numpy(np.asarray(by_formula(origin.double().numpy(), wide, "tensor")))
        half = torch.finfo(dtype).eps / 2 * expected.abs()
        assert ((merged[name].double() - expected).abs() <= 1.001 * half).all()


def test_a_change_of_exactly_zero_is_the_only_guard() -> None:
    one, none = torch.tensor([[3e-20, 0.0]]), torch.zeros(1, 2)
    assert cosine([one, none]).item() == 0
    assert cosine([none, none]).item() == 1
    assert cosine([one, torch.tensor([[4e-20, 3e-20]])]).item() == pytest.approx(0.8)
