"""Each term of the methods beside TRACER against the definition, written once more in NumPy float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import same
from core.terms.scenes import array, cross_entropy, kl, scene, softmax

from tracer.core import terms
from tracer.core.batch import Scene
from tracer.core.objective import Term

DISTILLING = {
    "soft_classes": terms.soft_classes(2.0),
    "soft_pairs": terms.soft_pairs(),
    "energy": terms.energy(),
    "context": terms.context(),
    "context, reversed": terms.context("student"),
    "spurious": terms.spurious(),
    "intermediate": terms.intermediate(),
    "intermediate, raw": terms.intermediate(unit=False),
}


def close(term: Term, at: Scene, expected: float) -> None:
    same(term(at), expected, sums=500)


def test_soft_classes() -> None:
    at = scene()
    p, q = (softmax(array(side.scores) / 2) for side in (at.taught[1], at.student))
    close(terms.soft_classes(2.0), at, 4 * kl(p, q))


def test_soft_pairs_is_a_sum_of_cross_entropies() -> None:
    at = scene()
    student, teacher = at.taught
    total = 0.0
    for flip in (False, True):
        mine, theirs = (
            float(side.scale) * array(side.image) @ array(side.text).T for side in (student, teacher)
        )
        p, q = softmax(theirs.T if flip else theirs), softmax(mine.T if flip else mine)
        total += -(p * np.log(q)).sum(axis=1).mean()
    close(terms.soft_pairs(), at, total)


def test_soft_pairs_differs_from_relational_by_the_teachers_entropy() -> None:
    at = scene()
    _, teacher = at.taught
    logits = float(teacher.scale) * array(teacher.image) @ array(teacher.text).T
    entropy = sum(-(p * np.log(p)).sum(axis=1).mean() for p in (softmax(logits), softmax(logits.T)))
    close(terms.soft_pairs(), at, terms.relational()(at).item() + entropy)


def test_orthogonal() -> None:
    at = scene()
    assert at.student.projections is not None
    image = array(at.student.projections[0])
    close(terms.orthogonal(), at, np.sqrt(((image.T @ image - np.eye(image.shape[1])) ** 2).sum()))


def test_orthogonal_columns_cost_nothing() -> None:
    at = scene()
    assert at.student.projections is not None
    q, _ = torch.linalg.qr(at.student.projections[0].detach())
    at = at._replace(student=at.student._replace(projections=(q, at.student.projections[1])))
    assert terms.orthogonal()(at).item() < 1e-14


def test_energy() -> None:
    at = scene()
    student, teacher = at.taught
    total = 0.0
    for f, g in zip(array(student.image), array(teacher.image), strict=True):
        gap = 4.0 * array(student.probe) @ f - 7.0 * array(teacher.probe) @ g
        total += (gap**2).sum() / (2 * len(gap)) / len(array(student.image))
    close(terms.energy(), at, total)


@pytest.mark.parametrize("direction", ["teacher", "student"])
def test_context(direction: str) -> None:
    at = scene()
    student, teacher = at.taught
    q, p = (softmax(float(s.scale) * array(s.image) @ array(s.probe).T) for s in (student, teacher))
    close(terms.context(direction), at, kl(p, q) if direction == "teacher" else kl(q, p))  # type: ignore[arg-type]


def wrapped(at: Scene) -> Scene:
    """As many probe texts as images: text j is image j's."""
    student, teacher = at.taught
    return at._replace(
        student=student._replace(probe=student.text), teacher=teacher._replace(probe=teacher.text)
    )


def test_spurious_passes_over_the_own_class_and_uses_the_teachers_temperature() -> None:
    at = wrapped(scene())
    student, teacher = at.taught
    assert at.label is not None
    label, total = at.label.numpy(), 0.0
    for i in range(len(label)):
        others = label != label[i]
        mine = 7.0 * array(student.image)[i] @ array(student.probe)[others].T
        theirs = 7.0 * array(teacher.image)[i] @ array(teacher.probe)[others].T
        total += kl(softmax(theirs[None]), softmax(mine[None])) / len(label)
    close(terms.spurious(), at, total)


def test_spurious_of_a_batch_of_one_class_is_zero() -> None:
    at = wrapped(scene())._replace(label=torch.zeros(6, dtype=torch.int64))
    assert terms.spurious()(at).item() == 0


def test_margin() -> None:
    at = scene()
    assert at.label is not None
    image, rows, label = array(at.student.image), array(at.student.classes), at.label.numpy()
    logits = 4.0 * np.array(
        [[f @ t - 0.3 * (rows[y] @ t) for t in rows] for f, y in zip(image, label, strict=True)]
    )
    close(terms.margin(0.3), at, cross_entropy(logits, label))


def test_margin_grows_with_the_distance_of_classes() -> None:
    """Up to a constant that no softmax notices, class c must be beaten by λ (1 − ⟨t_y, t_c⟩)."""
    at = scene()
    assert at.label is not None
    image, rows, label = array(at.student.image), array(at.student.classes), at.label.numpy()
    logits = 4.0 * (image @ rows.T + 0.3 * (1 - rows @ rows.T)[label])
    close(terms.margin(0.3), at, cross_entropy(logits, label))


def test_margin_without_strength_is_plain_cross_entropy() -> None:
    at = scene()
    assert at.label is not None
    logits = 4.0 * array(at.student.image) @ array(at.student.classes).T
    close(terms.margin(0.0), at, cross_entropy(logits, at.label.numpy()))


@pytest.mark.parametrize("unit", [True, False])
def test_intermediate(unit: bool) -> None:
    at = scene()
    student, teacher = at.taught
    assert student.features is not None
    assert teacher.features is not None
    total = 0.0
    for mine, theirs in zip(student.features, teacher.features, strict=True):
        a, b = array(mine), array(theirs)
        if unit:
            a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
        total += ((a - b) ** 2).sum(axis=1).mean()
    close(terms.intermediate(unit), at, total)


def test_anchored_is_the_contrastive_loss_of_the_anchors() -> None:
    at = scene()
    anchors = at.student.anchors
    assert anchors is not None
    logits = 3.0 * array(anchors.image) @ array(anchors.text).T
    label = np.arange(len(logits))
    close(terms.anchored(), at, (cross_entropy(logits, label) + cross_entropy(logits.T, label)) / 2)


@pytest.mark.parametrize("name", DISTILLING)
def test_moves_the_student_and_never_the_teacher(name: str) -> None:
    at = wrapped(scene()) if name == "spurious" else scene()
    DISTILLING[name](at).backward()
    student, teacher = at.taught
    assert moved(student)
    assert not moved(teacher)


def moved(side: object) -> bool:
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(side) if isinstance(leaf, torch.Tensor)]
    return any(leaf.grad is not None and leaf.grad.abs().sum() > 0 for leaf in tensors if leaf.is_leaf)


@pytest.mark.parametrize("name", [name for name in DISTILLING if name != "soft_pairs"])
def test_zero_where_the_teacher_is_the_student(name: str) -> None:
    at = wrapped(scene()) if name == "spurious" else scene()
    at = at._replace(teacher=at.student)
    assert DISTILLING[name](at).item() == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("name", DISTILLING)
def test_gradient_is_zero_where_the_teacher_is_the_student(name: str) -> None:
    at = wrapped(scene()) if name == "spurious" else scene()
    DISTILLING[name](at._replace(teacher=at.student)).backward()
    assert at.student.image.grad is None or at.student.image.grad.abs().max() < 1e-14
