"""Merges against their definitions in NumPy float64, and the identities that must hold to the last bit."""

from __future__ import annotations

from itertools import combinations

import closeness
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.core.model_stock import cosine, ratio, stock
from tracer.core.weights import Weights
from tracer.merging.fisher import fisher
from tracer.merging.soup import greedy, uniform
from tracer.merging.tpgm import first_radii, projected
from tracer.merging.wise import IMAGE_TOWER, alphas, interpolate

SHAPES = {
    "clip.visual.conv": (4, 3, 2, 2),
    "clip.text.weight": (3, 5),
    "clip.text.bias": (3,),
    "clip.logit_scale": (),
    "head.weight": (2, 5),
}


def model(seed: int, dtype: torch.dtype = torch.float64) -> Weights:
    rng = np.random.default_rng(seed)
    weights = {name: torch.from_numpy(np.asarray(rng.normal(size=s))).to(dtype) for name, s in SHAPES.items()}
    return {**weights, "clip.visual.num_batches_tracked": torch.tensor(seed)}


def same(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def floats(weights: Weights) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in weights.items() if value.is_floating_point()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_wise_at_its_ends_is_the_ends(dtype: torch.dtype) -> None:
    start, end = model(1, dtype), model(2, dtype)
    assert same(interpolate(start, end, 0.0), start)
    assert same(interpolate(start, end, 1.0), end)


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.9, 1.4, -0.2])
def test_wise_is_a_straight_line(alpha: float) -> None:
    start, end = model(1), model(2)
    for name, value in floats(interpolate(start, end, alpha)).items():
        expected = (1 - alpha) * start[name].numpy() + alpha * end[name].numpy()
        closeness.same(value, expected, sums=2)


def test_paint_moves_the_image_tower_alone() -> None:
    start, end = model(1), model(2)
    merged = interpolate(start, end, 1.0, IMAGE_TOWER)
    for name in start:
        assert torch.equal(merged[name], (end if name.startswith("clip.visual.") else start)[name])


def test_sweeps_by_name() -> None:
    assert alphas("0.5") == (0.5,)
    assert alphas("0:1:0.1") == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert alphas("-0.5:1.5:1", extrapolate=True) == (-0.5, 0.5, 1.5)
    assert alphas("0:1:0.3") == (0.0, 0.3, 0.6, 0.9, 1.0)  # both ends, also where the step does not divide
    assert alphas("0:1:0.35") == (0.0, 0.35, 0.7, 1.0)


@pytest.mark.parametrize("spelling", ["", "a", "0:1", "0:1:0", "1:0:0.1", "nan", "0:1:0.1:2", "inf"])
def test_what_is_no_sweep_is_refused(spelling: str) -> None:
    with pytest.raises(UserError, match=r"α|sweep"):
        alphas(spelling)


@pytest.mark.parametrize("spelling", ["1.5", "-0.1", "0:2:0.5"])
def test_alpha_outside_is_refused_unless_asked_for(spelling: str) -> None:
    with pytest.raises(UserError, match=r"outside \[0, 1\].*--extrapolate"):
        alphas(spelling)
    assert alphas(spelling, extrapolate=True)


def test_uniform_soup_is_the_mean() -> None:
    models = [model(seed) for seed in range(4)]
    for name, value in floats(uniform(models)).items():
        closeness.same(value, np.mean([m[name].numpy() for m in models], axis=0), sums=4)


def test_greedy_soup_takes_what_helps_and_says_why() -> None:
    """Scores are distances to a target that lies between a and b, far from c."""
    models = {name: {"w": torch.tensor([value])} for name, value in {"c": 9.0, "a": 1.0, "b": 4.0}.items()}
    weights, members, notes = greedy(models, lambda weights: -abs(float(weights["w"]) - 2.0))
    assert members == ["a", "b"]
    assert weights["w"].item() == 2.5
    assert [line.split()[0:2] for line in notes] == [["a", "starts:"], ["b", "joins:"], ["c", "is"]]


def test_greedy_soup_adds_nothing_for_an_equal_score() -> None:
    models = {"a": {"w": torch.tensor([1.0])}, "b": {"w": torch.tensor([1.0])}}
    assert greedy(models, lambda _: 0.5)[1] == ["a"]


def test_stock_by_its_formula() -> None:
    start, models = model(0), [model(seed) for seed in (1, 2, 3)]
    merged, cosines = stock(start, models)
    for name, value in floats(merged).items():
        changes = [m[name].numpy().ravel() - start[name].numpy().ravel() for m in models]
        pairs = [a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in combinations(changes, 2)]
        cos = np.clip(np.mean(pairs), 0, 1)
        t = 3 * cos / (1 + 2 * cos)
        mean = np.mean([m[name].numpy() for m in models], axis=0)
        closeness.same(value, t * mean + (1 - t) * start[name].numpy(), sums=4 * value.size)
        assert cosines[name] == pytest.approx(cos)


def test_stock_by_rows_has_a_ratio_a_row() -> None:
    start, models = model(0), [model(1), model(2)]
    merged, _ = stock(start, models, "row")
    name = "clip.text.weight"
    for row in range(3):
        a, b = (m[name][row].numpy() - start[name][row].numpy() for m in models)
        cos = np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), 0, 1)
        t = 2 * cos / (1 + cos)
        expected = (
            t * (models[0][name][row] + models[1][name][row]).numpy() / 2 + (1 - t) * start[name][row].numpy()
        )
        closeness.same(merged[name][row], expected, sums=4 * expected.size)


@pytest.mark.parametrize("by", ["tensor", "row"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_stock_of_identical_models_is_that_model(by: str, dtype: torch.dtype) -> None:
    start, end = model(0, dtype), model(1, dtype)
    assert same(stock(start, [end, end, end], by)[0], end)  # type: ignore[arg-type]


def test_stock_of_orthogonal_updates_is_the_start() -> None:
    start = {"w": torch.tensor([0.3, 0.1, 0.7, 0.2])}
    one, two = start["w"].clone(), start["w"].clone()
    one[:2] += 5
    two[2:] -= 3
    assert torch.equal(stock(start, [{"w": one}, {"w": two}])[0]["w"], start["w"])


def test_stock_of_opposite_updates_is_the_start() -> None:
    start = {"w": torch.zeros(3)}
    assert torch.equal(stock(start, [{"w": torch.ones(3)}, {"w": -torch.ones(3)}])[0]["w"], start["w"])


@given(st.integers(2, 6), st.floats(0, 1))
def test_the_ratio_lies_between_none_and_all(count: int, cos: float) -> None:
    t = ratio(torch.tensor([cos], dtype=torch.float64), count).item()
    assert cos - 1e-12 <= t <= 1


def test_cosine_where_nothing_moved_is_one() -> None:
    assert cosine([torch.zeros(1, 3), torch.zeros(1, 3)]).item() == 1


def test_stock_of_one_model_is_refused() -> None:
    with pytest.raises(UserError, match="two or more"):
        stock(model(0), [model(1)])


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_fisher_by_its_formula(alpha: float) -> None:
    start, end = model(1), model(2)
    rng = np.random.default_rng(5)
    known, learned = (
        {
            name: torch.from_numpy(np.asarray(rng.gamma(0.1, size=shape) ** 3))
            for name, shape in SHAPES.items()
        }
        for _ in range(2)
    )
    for name, value in floats(fisher(start, end, alpha, known, learned)).items():
        stay = (1 - alpha) * np.maximum(known[name].numpy(), 1e-8)
        go = alpha * np.maximum(learned[name].numpy(), 1e-8)
        expected = (stay * start[name].numpy() + go * end[name].numpy()) / (stay + go)
        closeness.same(value, expected, sums=4)


def test_fisher_at_its_ends_and_without_information() -> None:
    start, end = model(1), model(2)
    ones = {name: torch.rand(shape, dtype=torch.float64) for name, shape in SHAPES.items()}
    assert same(fisher(start, end, 0.0, ones, ones), start)
    assert same(fisher(start, end, 1.0, ones, ones), end)
    for name, value in floats(fisher(start, end, 0.25, {}, {})).items():
        closeness.same(value, interpolate(start, end, 0.25)[name], sums=2)


@pytest.mark.parametrize("norm", ["rows", "whole"])
def test_tpgm_projects_each_tensor_and_leaves_heads(norm: str) -> None:
    start, end = model(1), model(2)
    radii = first_radii(start, end, norm)  # type: ignore[arg-type]
    assert set(radii.radius) == {name for name in SHAPES if not name.startswith("head.")}
    merged = projected(start, end, radii.radius, norm)  # type: ignore[arg-type]
    for name, radius in radii.radius.items():
        change = end[name].numpy() - start[name].numpy()
        rows = change.reshape(len(change), -1) if change.ndim > 1 else change.reshape(1, -1)
        far = np.abs(rows).sum(axis=1) if norm == "rows" else np.array([np.linalg.norm(change)])
        assert radius.item() == pytest.approx((far.min() + 1e-8) / 2)
        share = np.clip(radius.item() / (far + 1e-8), 0, 1)
        share = share.reshape(-1, *[1] * (change.ndim - 1)) if change.ndim else share[0]
        closeness.same(merged[name], start[name].numpy() + share * change, sums=change.size + 4)
    assert torch.equal(merged["head.weight"], end["head.weight"])


def test_tpgm_with_endless_or_no_radius() -> None:
    start, end = model(1), model(2)
    moved = [name for name in SHAPES if not name.startswith("head.")]
    endless = projected(start, end, {name: torch.tensor(float("inf")) for name in moved}, "rows")
    none = projected(start, end, {name: torch.tensor(0.0) for name in moved}, "rows")
    assert same(endless, end)
    assert all(torch.equal(none[name], start[name]) for name in moved)
