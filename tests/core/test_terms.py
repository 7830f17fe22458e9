"""Every term: a case by hand, a twin in NumPy, finite differences, symmetry, and whom it moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import twins
from closeness import same
from torch import Tensor
from torch.nn.functional import normalize
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

import tracer.core.terms
from tracer.core.batch import Embedding, Scene
from tracer.core.errors import UserError
from tracer.core.objective import NEEDS, Term

LN3, LN4, LN43 = math.log(3), math.log(4), math.log(4 / 3)


def tokens(*values: float) -> Tensor:
    """One image whose tokens have one feature."""
    return torch.tensor(values, dtype=torch.float64)[None, :, None]


EYE, SWAP = torch.eye(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64).flip(0)

# With s = ln 3, a row (1, 0) of similarities is the distribution (¾, ¼). The teacher's texts are exchanged, so
# its rows are (¼, ¾), and KL(¼ ¾ ‖ ¾ ¼) = ¼ ln ⅓ + ¾ ln 3 = ½ ln 3.
STUDENT = Embedding(
    EYE,
    EYE,
    LN3,
    scores=LN3 * EYE,
    classes=EYE,
    probe=EYE,
    projections=(torch.tensor([[1.0, 2.0], [0.0, 2.0]], dtype=torch.float64), EYE),
    features=(EYE, 5 * EYE),
    anchors=Embedding(EYE, SWAP, LN3),
)
TEACHER = Embedding(EYE, SWAP, LN3, scores=LN3 * SWAP, classes=SWAP, probe=SWAP, features=(EYE, SWAP))
HAND = Scene(STUDENT, TEACHER, label=torch.tensor([0, 1]))
ONE_CLASS = HAND._replace(label=torch.tensor([1, 1]))

# Three images on the axes: row i of similarities is row i of these, its own text (*) is passed over, and what is
# left of the teacher's rows is (¾, ¼) and of the student's (¼, ¾), if both use the teacher's temperature.
CYCLE = LN3 * torch.tensor([[9.0, 1, 0], [0, 9, 1], [1, 0, 9]], dtype=torch.float64)
THREE = Scene(
    Embedding(torch.eye(3, dtype=torch.float64), scale=5.0, probe=CYCLE),
    Embedding(torch.eye(3, dtype=torch.float64), scale=1.0, probe=CYCLE.T),
    label=torch.tensor([0, 1, 2]),
)

# One image, two tokens, one feature. The tokens are (3, 4) and (4, 3): (0.6, 0.8) and (0.8, 0.6) at unit length, 0.04
# apart in each of two tokens. At the second tap they are (1, 0) and (−1, 0): 4 and 0. The mean is (0.04 + 2) / 2.
TOKENS = Scene(
    Embedding(torch.ones(1, 1, dtype=torch.float64), tokens=(tokens(3.0, 4.0), tokens(1.0, 0.0))),
    Embedding(torch.ones(1, 1, dtype=torch.float64), tokens=(tokens(4.0, 3.0), tokens(-1.0, 0.0))),
)


@dataclass(frozen=True)
class Case:
    """A term with its options, its value by hand, and what is true of it where the teacher is the student."""

    name: str
    hand: float
    scene: Scene = HAND
    options: dict[str, Any] = field(default_factory=dict)
    at_teacher: str = ""  # "zero": value and gradient vanish; "still": the gradient does; "moves": neither

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.options.items())})"

    @property
    def term(self) -> Term:
        return getattr(tracer.core.terms, self.name)(**self.options)

    def twin(self, scene: Scene) -> float:
        return getattr(twins, self.name)(twins.arrays(scene), **self.options)


CASES = [
    Case("classify", LN43),
    Case("classify", (LN4 + LN43) / 2, ONE_CLASS),
    Case("classify", 0.9 * LN43 + 0.1 * LN4, options={"smoothing": 0.2}),
    Case("contrastive", LN43),
    Case("contrastive", LN43, ONE_CLASS),  # labels change nothing where only the pair is positive
    Case("contrastive", LN43, options={"targets": "class"}),
    Case("contrastive", (LN4 + LN43) / 2, ONE_CLASS, {"targets": "class"}),
    Case("feature", 2.0, at_teacher="zero"),  # images agree, texts are √2 apart
    Case("relational", LN3, at_teacher="zero"),  # ½ ln 3 from images to texts and from texts to images
    Case("interactive", (LN4 + LN43) / 2, at_teacher="moves"),  # student images miss, student texts hit
    Case("interactive", (LN4 + LN43) / 2, ONE_CLASS, {"targets": "class"}, at_teacher="moves"),
    Case(
        "cross", LN3 / 4, at_teacher="zero"
    ),  # images to the teacher's texts agree, texts do not: ½ (0 + ½ ln 3)
    Case("cross_frobenius", 3.0),  # entries 1, 2, 0, 2
    Case("cross_frobenius", 4.5, options={"squared": True}),
    Case("orthogonal", math.sqrt(57)),  # P = (1 2; 0 2): PᵀP − I = (0 2; 2 7)
    Case("orthogonal", math.sqrt(57), options={"of": "rows"}),  # PPᵀ − I = (4 4; 4 3): equal, as P is square
    Case("anchored", LN4),
    Case("soft_classes", LN3 / 2, at_teacher="zero"),
    Case("soft_classes", 0.4 * LN3, options={"temperature": 0.5}, at_teacher="zero"),  # ¼ KL(⅒ ⁹⁄₁₀ ‖ ⁹⁄₁₀ ⅒)
    Case("soft_pairs", 2 * (LN43 / 4 + 3 * LN4 / 4), at_teacher="still"),
    Case("energy", LN3**2 / 2, at_teacher="zero"),  # every entry is off by ln 3
    Case("context", LN3 / 2, at_teacher="zero"),
    Case("context", LN3 / 2, options={"direction": "student"}, at_teacher="zero"),
    Case("spurious", LN3 / 2, THREE, at_teacher="zero"),
    Case("margin", math.log(1 + 3**-0.7)),  # the right class has s (1 − 0.3), the wrong one 0
    Case("margin", LN43, options={"strength": 0.0}),
    Case(
        "intermediate", 2.0, at_teacher="zero"
    ),  # the first block agrees, the second is √2 apart at unit length
    Case(
        "intermediate", 26.0, options={"unit": False}, at_teacher="zero"
    ),  # … and (5, 0) from (0, 1) as it is
    Case("token_features", 1.02, TOKENS, at_teacher="zero"),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)


def embedding(generator: torch.Generator, n: int = 5, d: int = 4, anchors: bool = True) -> Embedding:
    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    return Embedding(
        image=normalize(draw(n, d)),
        text=normalize(draw(n, d)),
        scale=1 + draw().abs(),
        scores=draw(n, 3),
        classes=normalize(draw(3, d)),
        probe=normalize(draw(n, d)),
        projections=(draw(6, d), draw(3, d)),
        features=(draw(n, 6), draw(n, 7)),
        tokens=(draw(n, 3, 4), draw(n, 3, 2)),
        anchors=embedding(generator, n + 1, d, anchors=False) if anchors else None,
    )


def random_scene(seed: int = 0) -> Scene:
    generator = torch.Generator().manual_seed(seed)
    label = torch.tensor([0, 2, 1, 0, 2])
    return Scene(embedding(generator), embedding(generator), label, progress=0.3)


def leaves(record: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(record)[0] if isinstance(leaf, Tensor) and leaf.is_floating_point()]


def watched(scene: Scene) -> Scene:
    """The scene with a gradient wanted of every float in it."""
    return tree_map_only(
        Tensor, lambda t: t.detach().clone().requires_grad_() if t.is_floating_point() else t, scene
    )


FIELDS = {need: [need] for need in NEEDS} | {"scores": ["scores", "classes"], "teacher": []}
ALWAYS = {"image", "scale"}


def stripped(scene: Scene, needs: frozenset[str]) -> Scene:
    """What a model that is asked for `needs` puts into a scene."""
    assert scene.teacher is not None
    gone = {name: None for name in Embedding._fields if name not in ALWAYS.union(*(FIELDS[n] for n in needs))}
    taught = scene.teacher._replace(**gone) if "teacher" in needs else None
    return scene._replace(student=scene.student._replace(**gone), teacher=taught)


def test_every_term_has_its_cases() -> None:
    assert {case.name for case in CASES} == set(tracer.core.terms.__all__)
    assert [case.name for case in CASES if case.term.name != case.name] == []


@cases
def test_by_hand(case: Case) -> None:
    same(case.term(case.scene), case.hand, sums=100, size=max(1, abs(case.hand)))


@cases
@pytest.mark.parametrize("seed", range(3))
def test_equals_its_twin(case: Case, seed: int) -> None:
    scene = random_scene(seed)
    same(case.term(scene), case.twin(scene), sums=500)
    assert case.twin(case.scene) == pytest.approx(case.hand, abs=1e-9)


@cases
@pytest.mark.usefixtures("unchecked")  # for speed
def test_gradient_is_the_finite_difference(case: Case) -> None:
    scene = stripped(random_scene(4), case.term.needs)
    flat, tree = tree_flatten(scene.student)

    def value(*given: Tensor) -> Tensor:
        rest = iter(given)
        student = [None if leaf is None else next(rest) for leaf in flat]
        return case.term(scene._replace(student=tree_unflatten(student, tree)))

    given = [leaf.clone().requires_grad_() for leaf in leaves(scene.student)]
    assert torch.autograd.gradcheck(value, given, check_undefined_grad=False)


@cases
def test_moves_the_student_and_never_the_teacher(case: Case) -> None:
    scene = watched(random_scene(5))
    case.term(scene).backward()
    assert any(leaf.grad is not None and leaf.grad.abs().sum() > 1e-6 for leaf in leaves(scene.student))
    assert all(leaf.grad is None or not leaf.grad.any() for leaf in leaves(scene.teacher))


@cases
def test_the_order_of_the_batch_is_nothing(case: Case) -> None:
    """Reordered pairs have the same loss, and each pair the same gradient."""

    def reordered(seen: Any, order: Tensor) -> Embedding:
        return seen._replace(
            image=seen.image[order],
            text=seen.text[order],
            scores=seen.scores[order],
            probe=seen.probe[order],  # text j of a probe may belong to image j
            features=tuple(block[order] for block in seen.features),
            tokens=tuple(block[order] for block in seen.tokens),
            anchors=reordered(seen.anchors, torch.arange(5, -1, -1)) if seen.anchors else None,
        )

    order = torch.tensor([3, 0, 4, 1, 2])
    scene: Any = watched(random_scene(6))
    other = Scene(reordered(scene.student, order), reordered(scene.teacher, order), scene.label[order])
    same(case.term(other), case.term(scene), sums=100)
    moved = watched(other)
    case.term(moved).backward()
    case.term(scene).backward()
    if scene.student.image.grad is not None:
        same(moved.student.image.grad, scene.student.image.grad[order], sums=100)
    for mine, theirs in [
        (scene.student.text, moved.student.text),
        (scene.student.scores, moved.student.scores),
    ]:
        if mine is not None and theirs is not None and mine.grad is not None:
            same(theirs.grad, mine.grad[order], sums=100)


@pytest.mark.parametrize("case", [case for case in CASES if "teacher" in case.term.needs], ids=str)
def test_where_the_teacher_is_the_student(case: Case) -> None:
    """Distillation has nothing to say there; ICL, a contrastive loss, has."""
    scene = random_scene(7)
    scene = watched(scene._replace(teacher=scene.student))
    value = case.term(scene)
    value.backward()
    pull = max(float(leaf.grad.abs().max()) for leaf in leaves(scene.student) if leaf.grad is not None)
    assert case.at_teacher in ("zero", "still", "moves")
    assert (abs(float(value.detach())) < 1e-12) == (case.at_teacher == "zero")
    assert (pull < 1e-12) == (case.at_teacher != "moves")


@cases
def test_needs_are_what_it_needs(case: Case) -> None:
    """With what it asks for it computes the same; without any one of them it says so."""
    scene, term = random_scene(8), case.term
    assert torch.equal(term(stripped(scene, term.needs)), term(scene))
    for need in term.needs:
        with pytest.raises(ValueError, match=r"need|teacher|no text|no probe"):
            term(stripped(scene, term.needs - {need}))


@cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_any_float_will_do(case: Case, dtype: torch.dtype) -> None:
    scene = random_scene(9)
    coarse = tree_map_only(Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, scene)
    expected = float(case.term(scene))
    same(float(case.term(coarse)), expected, sums=5, size=max(1, expected), dtype=dtype)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "make",
    [lambda: tracer.core.terms.contrastive("pairs"), lambda: tracer.core.terms.interactive("klass")],  # pyright: ignore[reportArgumentType]
)
def test_unknown_targets_are_refused(make: Callable[[], Term]) -> None:
    with pytest.raises(UserError, match="did you mean"):
        make()


@pytest.mark.parametrize("name", ["contrastive", "interactive"])
def test_class_targets_count_one_class_as_positive(name: str) -> None:
    """With all labels different, or unknown (−1), nothing changes; else same-class negatives stop repelling."""
    pair, by_class = getattr(tracer.core.terms, name)(), getattr(tracer.core.terms, name)(targets="class")
    scene = random_scene(10)
    for label in (torch.arange(5), torch.full((5,), -1)):
        assert by_class(scene._replace(label=label)) == pytest.approx(pair(scene))
    assert float(by_class(scene)) != pytest.approx(float(pair(scene)), rel=1e-3)
    with pytest.raises(ValueError, match="labels"):
        by_class(scene._replace(label=None))


def test_texts_of_an_unknown_class_are_those_of_other_images() -> None:
    """The spurious term leaves out the texts of an image's class; −1 is the class of no other image."""
    scene, term = random_scene(10), tracer.core.terms.spurious()
    unknown, distinct = (scene._replace(label=label) for label in (torch.full((5,), -1), torch.arange(5)))
    assert float(term(unknown)) == pytest.approx(float(term(distinct)))
    assert float(term(unknown)) > 0
