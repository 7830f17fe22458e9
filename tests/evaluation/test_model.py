"""What `tracer.load` gives: predictions that print well, for any model and any words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import tracer
from tracer.cli import main
from tracer.core.errors import UserError
from tracer.evaluation.model import Model
from tracer.models.student import Student, load
from tracer.models.task import Task

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 30, 30, 3), np.uint8)
CLASSES = ("a cat", "a dog", "an owl")


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("tiny-28", seed=3), Task(CLASSES, ("one of {}", "{}"), temperature=0.5))


@pytest.fixture(scope="module")
def nameless() -> Model:
    return Model(load("tiny-28", seed=3))


def test_an_answer_says_class_probability_and_the_next(model: Model) -> None:
    answers, shares = model.predict(PIXELS, top=2), model.predict_proba(PIXELS)
    assert shares.shape == (5, 3)
    np.testing.assert_allclose(shares.sum(1), 1)
    for number, answer in enumerate(answers):
        order = np.argsort(-shares[number])
        assert answer.top == tuple((CLASSES[k], shares[number, k]) for k in order[:2])
        assert (answer.name, answer.probability) == answer.top[0]
    first = answers[0]
    assert str(first) == f"0: {first.name} {first.probability:.1%} ({first.top[1][0]} {first.top[1][1]:.1%})"
    assert repr(answers).splitlines() == [str(each) for each in answers]
    assert list(np.asarray(answers)) == list(answers.names) == [each.name for each in answers]
    assert np.array_equal(model.classes_[shares.argmax(1)], answers.names)


def test_probabilities_are_those_of_logits_by_the_temperature(model: Model, nameless: Model) -> None:
    """The logits are scale × cosine, of the mean of the prompts; words that are no classes have no temperature."""
    prompts = [[template.format(name) for template in model.task.templates] for name in CLASSES]
    texts = np.stack([nameless.embed_text(each).mean(0) for each in prompts])
    logits = (
        float(model.student.scale) * model.embed(PIXELS) @ (texts / np.linalg.norm(texts, axis=1)[:, None]).T
    )
    for temperature, found in (
        (0.5, model.predict_proba(PIXELS)),
        (1.0, nameless.predict_proba(PIXELS, CLASSES, templates=model.task.templates)),
    ):
        expected = torch.from_numpy(logits / temperature).double().softmax(1)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_words_of_one_s_own_are_put_into_the_prompts_that_were_asked_for(nameless: Model) -> None:
    words, task = ("rain", "snow"), Task(CLASSES, ("one of {}",))
    asked = Model(nameless.student, Task(CLASSES, ("one of {}",), asked=True))
    known = Model(nameless.student, task)
    by = {name: nameless.predict_proba(PIXELS, words, templates=name) for name in ("one of {}", "openai")}
    assert np.array_equal(asked.predict_proba(PIXELS, words), by["one of {}"])
    assert np.array_equal(known.predict_proba(PIXELS, words), by["openai"])
    assert np.array_equal(nameless.predict_proba(PIXELS, words), by["openai"])


def test_it_is_in_eval_mode_and_works_where_no_gradient_is_kept(model: Model) -> None:
    before = model.predict_proba(PIXELS)
    assert not model.student.training
    with torch.inference_mode():
        assert np.array_equal(Model(model.student, model.task).predict_proba(PIXELS), before)
    assert np.array_equal(model.predict_proba(PIXELS), before)


def test_many_images_are_the_images_one_by_one(model: Model) -> None:
    many = np.concatenate([PIXELS] * 30)
    one_by_one = np.concatenate([model.embed(Image.fromarray(each)) for each in PIXELS])
    np.testing.assert_allclose(model.embed(many), np.concatenate([one_by_one] * 30), atol=1e-6)


def test_no_image_has_no_answer(model: Model) -> None:
    assert len(model.predict([])) == 0
    assert model.predict_proba([]).shape == (0, 3)
    assert model.embed([]).shape == (0, 128)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "was not finetuned to name classes: give classes="),
        ({"classes": "a cat"}, "give a list of names"),
        ({"classes": ["a cat"]}, "between at least two classes"),
        ({"classes": ["a", "b", "a"]}, "'a' is given twice"),
        ({"classes": ["a", "b"], "top": 0}, "at least one class"),
        ({"classes": ["a", "b"], "templates": ["no place"]}, "exactly one {}"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(asked: dict[str, object], message: str, nameless: Model) -> None:
    with pytest.raises(UserError, match=message):
        nameless.predict(PIXELS, **asked)  # pyright: ignore[reportArgumentType]


def test_it_says_what_it_is(model: Model, nameless: Model, student: Student) -> None:
    assert repr(model) == "Model(tiny-28, 3 classes (a cat, a dog, an owl) by class names)"
    assert repr(nameless) == "Model(tiny-28)"


def test_weights_of_what_is_no_run_are_refused(minute: str) -> None:
    """They would be left out without a word."""
    with pytest.raises(UserError, match="names weights of a run, and this is none"):
        tracer.load(minute, "none", weights="teacher")
    assert main(["eval", minute, "--pretrained", "none", "--weights", "teacher", "--data", "digits"]) == 2
