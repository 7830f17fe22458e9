"""A store gives back what the same model was asked before, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tracer.data.examples import Examples, Pixels
from tracer.measure.answers import Answers, Estimate, Key, Predictions, Store

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 6, 3), dtype=np.uint8)
EXAMPLES = Examples(
    name="photos",
    images=Pixels(PIXELS),
    ids=["a", "b", "c", "d"],
    labels=np.array([0, 1, 0, 1]),
    captions=[("one",), ("two",), (), ()],
    classes=("cat", "dog"),
)
KEY = Key.of(EXAMPLES, templates=("a {}",))


def answered(name: str = "test", key: Key = KEY, by: str = "x", share: float = 0.5) -> Answers:
    predictions = Predictions(torch.eye(2).repeat(2, 1), torch.tensor([0, 1, 1, 0]), list("abcd"))
    estimates = (Estimate(name, "id", "accuracy", share, 0.1, 0.9, 4, rule="as it is"),)
    return Answers.of(name, "id", key, by, predictions, estimates=estimates, classes=("cat", "dog"))


@pytest.mark.parametrize(
    ("different", "changes"),
    [
        ("images", {"images": Pixels(PIXELS + 1)}),
        ("images", {"images": Pixels(PIXELS[::-1])}),
        ("labels", {"labels": np.array([1, 0, 1, 0])}),
        ("captions", {"captions": [(), (), (), ()]}),
        ("class names", {"classes": ("cat", "dog", "ship")}),
        ("labels and class names", {"classes": ("cat", "wolf")}),
        ("", {"ids": list("wxyz"), "name": "the same under other names"}),
        ("", {"classes": ("dog", "cat"), "labels": np.array([1, 0, 1, 0])}),
    ],
)
def test_a_question_differs_in_what_an_answer_depends_on(different: str, changes: dict) -> None:
    assert KEY.differs(Key.of(replace(EXAMPLES, **changes), templates=("a {}",))) == different


def test_prompts_classes_rule_and_what_is_done_to_images_are_parts_of_a_question() -> None:
    assert KEY.differs(Key.of(EXAMPLES, templates=("the {}",))) == "templates"
    assert KEY.differs(Key.of(EXAMPLES, ("cat", "dog", "ship"), ("a {}",))) == "class names"
    noisy = replace(EXAMPLES, images=Pixels(PIXELS[:, ::2]))
    assert KEY.differs(Key.of(noisy, templates=("a {}",), rule="noise", images=EXAMPLES)) == "rule"


def test_the_same_model_asked_the_same_gets_all_of_its_answer(tmp_path: Path) -> None:
    store, answers = Store(tmp_path), answered()
    store.write(replace(answers, source={"data": "p\udcff"}))
    read = store.read("test", "id", "x", KEY)
    assert read is not None
    assert read.predictions is not None
    assert torch.equal(read.predictions.logits, answers.predictions.logits)
    assert (read.predictions.ids, read.hits) == (list("abcd"), (True, True, False, False))
    assert (read.estimates, read.classes, read.source) == (
        answers.estimates,
        answers.classes,
        {"data": "p\udcff"},
    )
    (header,) = store.all("x")
    assert (header.estimates, header.predictions, header.hits) == (answers.estimates, None, ())


def test_nobody_else_and_nothing_else(tmp_path: Path) -> None:
    store, other = Store(tmp_path), KEY._replace(labels="other")
    store.write(answered())
    assert store.read("test", "id", "y", KEY) is None
    assert store.read("test", "id", "x", other) is None
    assert store.read("tests", "id", "x", KEY) is None
    assert store.read("test", "ood", "x", KEY) is None
    assert store.all("y") == []
    assert store.near("test", "id", "x", other) == "labels"
    assert store.near("test", "id", "y", other) == "weights and labels"
    assert store.near("tests", "id", "x", other) == ""
    assert store.near("test", "task", "x", other) == ""  # the held-out set may have the name too


def test_another_question_of_the_same_name_and_other_weights_take_the_place(tmp_path: Path) -> None:
    store, other = Store(tmp_path), KEY._replace(labels="other")
    for name in ("first", "test", "last"):
        store.write(answered(name))
    store.write(answered(key=other))
    assert [(each.name, each.key) for each in store.all()] == [("first", KEY), ("test", other), ("last", KEY)]
    store.write(answered(key=other, by="y"))
    assert [each.name for each in store.all("x")] == ["first", "last"]


NAMES = (
    "y/test",
    "y_test",
    "Y_test",
    "y test",
    "y:test",
    "yé",
    "yè",
    "long " * 99,
    "long " * 98,
    ".",
    "..",
    "",
)


def test_every_name_has_a_file_of_its_own_whatever_the_file_system_makes_of_case(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number, name in enumerate(NAMES):
        store.write(answered(name, share=number / 100))
    files = [file.name for file in tmp_path.glob("*.safetensors")]
    assert len({name.casefold() for name in files}) == len(NAMES)
    assert all(len(name.encode()) < 255 for name in files)
    found = {each.name: each.estimates[0].value for each in store.all()}
    assert found == {name: number / 100 for number, name in enumerate(NAMES)}


def test_the_held_out_set_and_a_test_set_called_like_it_are_two(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(answered("held-out"))
    store.write(replace(answered("held-out"), role="task"))
    assert [each.role for each in store.all()] == ["id", "task"]


def test_what_is_damaged_is_no_number_and_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(answered())
    (file,) = tmp_path.glob("*.safetensors")
    whole = file.read_bytes()
    changed = whole.replace(b"0.5", b"0.7", 1)
    for content in (b"", b"nonsense", whole[:-3], whole[:-1] + b"\x07", changed):
        file.write_bytes(content)
        assert store.read("test", "id", "x", KEY) is None
    notes: list[str] = []
    assert store.all(notes=notes) == []
    assert f"{file.name} is not readable" in notes[0]


def test_answers_that_are_written_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    names = [f"set {number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: Store(tmp_path).write(answered(name)), names))
    assert sorted(each.name for each in Store(tmp_path).all()) == names
