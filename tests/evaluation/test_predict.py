"""Images are embedded once, whoever scores them afterwards, and the scores are those of a pass for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import length, same
from counting import counted
from PIL import Image

from tracer.data.embedded.digits import digits
from tracer.data.examples import Examples
from tracer.data.sources import load as load_data
from tracer.evaluation.predict import Scorer
from tracer.evaluation.score import score_test_sets
from tracer.evaluation.suites.own import own
from tracer.evaluation.suites.shift import Suite
from tracer.models.student import Student
from tracer.parallel import World

NAMES, OTHERS = ("zero", "one", "two"), ("cat", "dog", "sea", "sky")
PROMPTS = ("a photo of {}.",)


@pytest.fixture
def some() -> Examples:
    return digits("test").take(np.arange(100))  # a batch and a part of one


def test_two_class_lists_cost_one_pass_and_score_as_with_two(shared_student: Student, some: Examples) -> None:
    scorer = Scorer(shared_student, World("cpu", "fp32"))
    with counted(shared_student) as images:
        features = scorer.embed(some)
        once = [scorer.score(features, PROMPTS, names).logits for names in (NAMES, OTHERS)]
    assert sum(images) == len(some)
    twice = [scorer.predict(some, PROMPTS, names).logits for names in (NAMES, OTHERS)]
    assert all(torch.equal(a, b) for a, b in zip(once, twice, strict=True))


def test_a_score_is_the_product_of_unit_embeddings(shared_student: Student, some: Examples) -> None:
    scorer = Scorer(shared_student, World("cpu", "fp32"))
    features = scorer.embed(some)
    same(features.unit.norm(dim=1), torch.ones(len(some)), sums=128)
    scored = scorer.score(features, PROMPTS, NAMES).logits / shared_student.scale
    tokens = shared_student.tokeniser([PROMPTS[0].format(name) for name in NAMES])
    same(scored, features.unit @ shared_student.embed_text(tokens).T, length(shared_student), size=1)


def test_a_part_of_what_was_seen_is_what_a_part_shows(shared_student: Student, some: Examples) -> None:
    scorer, rows = Scorer(shared_student, World("cpu", "fp32")), np.arange(0, 100, 7)
    part, alone = scorer.embed(some).take(rows), scorer.embed(some.take(rows))
    same(part.features, alone.features, length(shared_student))
    assert part.examples.ids == alone.examples.ids


@pytest.mark.parametrize("workers", [1, 2])
def test_whoever_decodes_them_the_features_are_the_same(
    shared_student: Student, tmp_path: Path, workers: int
) -> None:
    rng = np.random.default_rng(0)
    for kind in ("a", "b"):
        (tmp_path / kind).mkdir()
        for i in range(70):
            Image.fromarray(rng.integers(256, size=(30, 30, 3), dtype=np.uint8)).save(
                tmp_path / kind / f"{i}.png"
            )
    files = load_data(tmp_path)
    alone, helped = (Scorer(shared_student, World("cpu", "fp32"), (), n).embed(files) for n in (0, workers))
    assert torch.equal(alone.features, helped.features)


def test_labels_and_captions_share_a_pass(shared_student: Student, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(256, size=(9, 28, 28, 3), dtype=np.uint8)
    captions = np.array([f"picture {i}" for i in range(9)])
    np.savez(tmp_path / "both.npz", images=pixels, labels=np.arange(9) % 3, captions=captions)
    opened = Suite("own", (own(str(tmp_path / "both.npz"), "id"),)).open()
    with counted(shared_student) as images:
        ((_, rows, *_),) = score_test_sets(Scorer(shared_student, World("cpu", "fp32")), opened)
    assert sum(images) == 9
    assert {"accuracy", "image_to_text@1"} <= {row.metric for row in rows}
