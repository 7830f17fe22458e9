"""Sigmoid losses against loops over pairs in float64, open_clip, finite differences, blocks and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from closeness import same
from core.terms.scenes import array, scene
from torch import Tensor

from tracer.core import terms
from tracer.core.batch import Embedding, Scene, Share
from tracer.core.objective import Term
from tracer.core.terms import sigmoid as pairwise

STUDENT_BIAS, TEACHER_BIAS = -1.5, -2.5


def biased(seed: int = 0) -> Scene:
    """The scene of six samples, with a bias on each side and on the anchors."""

    def number(value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, requires_grad=True)

    plain = scene(seed)
    student, teacher = plain.taught
    assert student.anchors is not None
    anchors = student.anchors._replace(scale=number(3.0), bias=number(-0.5))
    return plain._replace(
        student=student._replace(scale=number(4.0), bias=number(STUDENT_BIAS), anchors=anchors),
        teacher=teacher._replace(bias=number(TEACHER_BIAS)),
    )


def logit(model: Embedding, row: np.ndarray, column: np.ndarray) -> float:
    assert model.bias is not None
    return float(torch.as_tensor(model.scale).detach()) * float(row @ column) + float(model.bias.detach())


def probability(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def loss(x: float, positive: bool) -> float:
    return -math.log(probability(x if positive else -x))


def kl(t: float, x: float) -> float:
    p, q = probability(t), probability(x)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def entropy(t: float, x: float) -> float:
    p, q = probability(t), probability(x)
    return -p * math.log(q) - (1 - p) * math.log(1 - q)


def sides(at: Scene) -> tuple[Any, ...]:
    student, teacher = at.taught
    arrays = [array(each) for each in (student.image, student.text, teacher.image, teacher.text)]
    return student, teacher, *arrays


def is_positive(at: Scene, targets: str, i: int, j: int) -> bool:
    assert at.label is not None
    same = at.label[i] == at.label[j] and at.label[i] >= 0
    return i == j or (targets == "class" and bool(same))


def contrastive(at: Scene, targets: str) -> float:
    student, _, u, v, _, _ = sides(at)
    n = range(len(u))
    return sum(loss(logit(student, u[i], v[j]), is_positive(at, targets, i, j)) for i in n for j in n) / len(
        u
    )


def relational(at: Scene) -> float:
    student, teacher, u, v, tu, tv = sides(at)
    n = range(len(u))
    rows = sum(kl(logit(teacher, tu[i], tv[j]), logit(student, u[i], v[j])) for i in n for j in n)
    columns = sum(kl(logit(teacher, tu[j], tv[i]), logit(student, u[j], v[i])) for i in n for j in n)
    return (rows + columns) / len(u)


def interactive(at: Scene, targets: str) -> float:
    student, _, u, v, tu, tv = sides(at)
    total, n = 0.0, range(len(u))
    for i in n:
        for j in n:
            positive = is_positive(at, targets, i, j)
            total += loss(logit(student, u[i], tv[j]), positive) + loss(logit(student, v[i], tu[j]), positive)
    return total / 2 / len(u)


def cross(at: Scene) -> float:
    student, teacher, u, v, tu, tv = sides(at)
    total, n = 0.0, range(len(u))
    for i in n:
        for j in n:
            total += kl(logit(teacher, tu[i], tv[j]), logit(student, u[i], tv[j]))
            total += kl(logit(teacher, tu[j], tv[i]), logit(student, v[i], tu[j]))
    return total / 2 / len(u)


def soft_pairs(at: Scene) -> float:
    student, teacher, u, v, tu, tv = sides(at)
    n = range(len(u))
    return (
        2
        * sum(entropy(logit(teacher, tu[i], tv[j]), logit(student, u[i], v[j])) for i in n for j in n)
        / len(u)
    )


def anchored(at: Scene) -> float:
    anchors = at.student.anchors
    assert anchors is not None
    u, v = array(anchors.image), array(anchors.text)
    n = range(len(u))
    return sum(loss(logit(anchors, u[i], v[j]), i == j) for i in n for j in n) / len(u)


CASES: dict[str, tuple[Term, Callable[[Scene], float]]] = {
    "contrastive": (terms.contrastive(), lambda at: contrastive(at, "pair")),
    "contrastive, class": (terms.contrastive("class"), lambda at: contrastive(at, "class")),
    "relational": (terms.relational(), relational),
    "interactive": (terms.interactive(), lambda at: interactive(at, "pair")),
    "interactive, class": (terms.interactive("class"), lambda at: interactive(at, "class")),
    "cross": (terms.cross(), cross),
    "soft_pairs": (terms.soft_pairs(), soft_pairs),
    "anchored": (terms.anchored(), anchored),
}
cases = pytest.mark.parametrize("name", CASES)


def leaves(record: Any) -> list[Tensor]:
    found = torch.utils._pytree.tree_leaves(record)
    return [leaf for leaf in found if isinstance(leaf, Tensor) and leaf.requires_grad]


def gradients(term: Term, at: Scene) -> list[Tensor | None]:
    student = leaves(at.student)
    return list(torch.autograd.grad(term(at), student, allow_unused=True))


@cases
def test_equals_a_loop_over_pairs(name: str) -> None:
    term, loop = CASES[name]
    same(term(biased()), loop(biased()), sums=500)


@cases
def test_gradient_is_the_finite_difference_and_reaches_scale_and_bias(name: str) -> None:
    """Along a random direction of each input by itself; the teacher gets no gradient."""
    term, at = CASES[name][0], biased(1)
    own = at.student.anchors if name == "anchored" else at.student
    assert own is not None
    term(at).backward()
    generator = torch.Generator().manual_seed(2)
    for field in ("image", "text", "scale", "bias"):
        value: Any = getattr(own, field)
        direction = torch.randn(value.shape, generator=generator, dtype=torch.float64)
        values = []
        for step in (1e-6, -1e-6):
            moved = own._replace(**{field: value.detach() + step * direction})
            student = at.student._replace(anchors=moved) if name == "anchored" else moved
            values.append(term(at._replace(student=student)).item())
        slope = float((value.grad * direction).sum())
        assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-6), field
        assert abs(slope) > 1e-4
    assert all(leaf.grad is None for leaf in leaves(at.teacher))


@pytest.mark.parametrize("name", ["relational", "cross"])
def test_zero_where_the_teacher_is_the_student(name: str) -> None:
    at = biased()
    at = at._replace(teacher=at.student)
    assert CASES[name][0](at).item() == pytest.approx(0, abs=1e-14)
    assert all(g is None or g.abs().max() < 1e-14 for g in gradients(CASES[name][0], at))


@pytest.mark.parametrize("count", [1, 4, 5])
@cases
def test_blocks_change_neither_value_nor_gradient(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = CASES[name][0]
    whole, expected = term(biased()), gradients(term, at := biased())
    monkeypatch.setattr(pairwise, "BLOCK", count)
    same(term(at), whole, sums=50)
    for mine, theirs in zip(gradients(term, at), expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            same(mine, theirs, sums=50, size=1)


@cases
def test_shares_add_up(name: str) -> None:
    term, at = CASES[name][0], biased()
    parts = [term(at._replace(share=Share(index, 3))) for index in range(3)]
    same(torch.stack(parts).sum(), term(at), sums=50)
    assert min(float(part.detach()) for part in parts) > 0


def test_pairs_cost_what_open_clip_makes_them_cost() -> None:
    from open_clip.loss import SigLipLoss

    student = biased().student
    assert student.text is not None
    expected = SigLipLoss()(student.image, student.text, student.scale, student.bias)
    same(terms.contrastive()(biased()), expected, sums=50)


def test_a_random_text_costs_lipsum_the_difference_of_biases() -> None:
    at = biased()
    at = at._replace(teacher=at.student._replace(bias=at.student.bias - 3))
    assert terms.energy()(at).item() == pytest.approx(9 / 2)


def test_labels_are_asked_for() -> None:
    with pytest.raises(ValueError, match="labels"):
        terms.contrastive("class")(biased()._replace(label=None))
