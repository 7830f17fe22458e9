"""Further texts: a function of the step, the same in every process, and what they claim to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import length, same
from posting import posted

from tracer.core.errors import UserError
from tracer.methods.text_probes import SETTINGS, Contexts, RandomTexts, Wrapped
from tracer.models.zero_shot import zero_shot

CLASSES = ("dog", "cat", "tram")


def nothing() -> list[str]:
    raise AssertionError("this probe does not read captions")


def test_random_texts_are_wrapped_pieces_of_text(shared_student) -> None:
    draw = RandomTexts(80, 8).prepare(shared_student, CLASSES)
    tokens = draw(np.random.default_rng(0), nothing)
    assert tokens.shape == (80, 10)
    assert tokens[:, 0].unique().tolist() == [49406]
    assert tokens[:, -1].unique().tolist() == [49407]
    inside = tokens[:, 1:-1]
    assert 0 <= inside.min() < 1000
    assert 48000 < inside.max() <= 49405
    assert shared_student.embed_text(tokens).shape == (80, 128)


def test_draws_depend_on_the_generator_alone_and_travel_to_workers(shared_student) -> None:
    for probe in (RandomTexts(5, 3), Wrapped(SETTINGS)):
        draw = probe.prepare(shared_student, CLASSES)
        sent = posted(draw)
        texts = lambda: ["a photo of a dog.", "a tram"]  # noqa: E731
        one, two, other = (d(np.random.default_rng(s), texts) for d, s in ((draw, 1), (sent, 1), (draw, 2)))
        assert torch.equal(one, two)
        assert one.shape != other.shape or not torch.equal(one, other)


def test_a_length_that_does_not_fit_is_refused(shared_student) -> None:
    with pytest.raises(UserError, match=r"31 tokens.*1 to 30"):
        RandomTexts(2, 31).prepare(shared_student, CLASSES)


def test_contexts_are_means_over_classes(shared_student) -> None:
    templates = ("a photo of a {}.", "a sketch of a {}.")
    rows = Contexts(templates).prepare(shared_student, CLASSES)(np.random.default_rng(0), nothing)
    for row, template in zip(rows, templates, strict=True):
        one = [
            zero_shot(shared_student, (name,), (template,))[0].numpy().astype(np.float64) for name in CLASSES
        ]
        mean = np.mean(one, axis=0)
        same(row, mean / np.linalg.norm(mean), length(shared_student))


def test_wrapped_captions_keep_their_order(shared_student) -> None:
    draw = Wrapped(("{} in the fog.",)).prepare(shared_student, CLASSES)
    tokens = draw(np.random.default_rng(0), lambda: ["a photo of a dog.", "a tram"])
    expected = shared_student.tokeniser(["a photo of a dog in the fog.", "a tram in the fog."])
    assert torch.equal(tokens, expected)
