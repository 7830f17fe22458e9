"""Cheaper forwards of the teacher: what each computes, and that the package is left as it was."""

from __future__ import annotations

import pytest
import torch
from closeness import length, same

from studies.emojishift.cheaper_teachers import CHEAPER, bf16, cheaper_teacher, part, resolution
from tracer.core.batch import Batch, Embedding, Scene
from tracer.core.shadow import Shadow
from tracer.methods.base import method, methods
from tracer.models.student import Student, load
from tracer.training import setup

NEEDS = frozenset({"text"})
PAIRS = 8


@pytest.fixture(scope="module")
def student() -> Student:
    return load("tiny-32").eval()


@pytest.fixture(scope="module")
def batch(student: Student) -> Batch:
    pixels = torch.randint(256, (PAIRS, 3, 32, 32), generator=torch.Generator().manual_seed(0))
    texts = student.tokenise(["a cat", "a dog", "a red car"])
    caption = torch.arange(PAIRS) % 3
    return Batch(pixels.to(torch.uint8), texts, caption, caption)


@torch.no_grad()
def test_all_pairs_or_the_full_side_are_the_whole_forward(student: Student, batch: Batch) -> None:
    whole = student(batch, NEEDS)
    for forward in (part(1.0), resolution(1.0)):
        same(forward(student, batch, NEEDS).image, whole.image, length(student))
        same(forward(student, batch, NEEDS).text, whole.text, length(student))


@torch.no_grad()
def test_terms_on_half_of_the_batch_are_those_of_a_batch_of_that_half(student: Student, batch: Batch) -> None:
    with cheaper_teacher("tracer_half_batch"):
        halved = method("tracer_half_batch").stages[0].objective
    whole = method("tracer").stages[0].objective
    own = student(batch, halved.needs)
    taught = part(1 / 2)(student, batch, NEEDS)
    rows = taught.image.any(dim=1)
    assert rows.sum() == PAIRS // 2
    assert taught.text is not None
    assert torch.equal(taught.text.any(dim=1), rows)

    def taken(embedding: Embedding) -> Embedding:
        assert embedding.text is not None
        return embedding._replace(image=embedding.image[rows], text=embedding.text[rows])

    assert batch.label is not None
    parts = halved(Scene(own, taught, batch.label)).parts
    of_half = whole(Scene(taken(own), taken(taught), batch.label[rows])).parts
    for name in ("feature", "relational", "interactive", "cross"):
        same(parts[name], of_half[name], sums=1000)
    assert parts["contrastive"] != of_half["contrastive"]  # that of all pairs


@torch.no_grad()
def test_bf16_is_as_far_from_fp32_as_autocast_is(student: Student, batch: Batch) -> None:
    exact = student(batch, NEEDS)
    with torch.autocast("cpu", torch.bfloat16):
        autocast = student(batch, NEEDS)
    emulated = bf16(student, batch, NEEDS)
    for name in ("image", "text"):
        reference = getattr(exact, name)
        ours, theirs = ((getattr(each, name) - reference).norm() for each in (emulated, autocast))
        assert 0.5 < ours / theirs < 2


@torch.no_grad()
def test_fewer_patches_are_computed_at_a_lower_resolution(student: Student, batch: Batch) -> None:
    shapes: list[torch.Size] = []
    hook = student.clip.visual.transformer.register_forward_hook(
        lambda _, inputs, __: shapes.append(inputs[0].shape)
    )
    lower = resolution(1 / 2)(student, batch, NEEDS)
    hook.remove()
    assert shapes[0][1] == 1 + 2 * 2
    assert lower.image.shape == student(batch, NEEDS).image.shape


def test_the_package_does_not_know_these_methods_afterwards() -> None:
    with cheaper_teacher("tracer_bf16"):
        assert CHEAPER.keys() <= methods().keys()
        assert setup.Shadow is not Shadow
    assert not CHEAPER.keys() & methods().keys()
    assert setup.Shadow is Shadow
