"""Splits are used as their names say, in every format, and training never sees what is held out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.data.formats.memory import register
from tracer.data.options import canonical
from tracer.data.sources import load
from tracer.data.split import divide
from tracer.evaluation.suites.own import own
from tracer.models.task import Task

SPLITS = ("train", "training", "val", "valid", "validation", "dev", "eval", "test", "testing")


def folder(tmp_path, picture, splits):
    for split in splits:
        for i in range(6):
            picture(f"{split}/{'ab'[i % 2]}/{i}.png")
    return str(tmp_path)


def table(tmp_path, picture, splits):
    rows = []
    for split in splits:
        for i in range(6):
            picture(f"{split}-{i}.png")
            rows.append(f"{split}-{i}.png,{'ab'[i % 2]},{split}")
    (tmp_path / "t.csv").write_text("\n".join(["image,label,split", *rows]))
    return str(tmp_path / "t.csv")


def test_a_share_for_a_test_is_neither_trained_on_nor_held_out(tmp_path, picture):
    """And what is held out stays what it would be without the images of the test."""
    spec = folder(tmp_path, picture, ("train",))
    division = divide(spec, share=0.34, test_share=0.34)
    parts = [set(each.ids) for each in (division.train, division.held_out, division.test)]
    assert [len(part) for part in parts] == [2, 2, 2]
    assert set.union(*parts) == set(divide(spec, share=0).train.ids)
    assert str(division).endswith("2 kept for a test")
    assert divide(spec).test is None


def test_one_split_given_from_python_is_not_taken_for_the_others(tmp_path, picture):
    """A `DatasetDict` is read as its training split: there is no val or test under the name it gets."""
    train = load(folder(tmp_path, picture, ("train", "val", "test")), split="train")
    assert "val" in train.splits
    division = divide(register(train), share=None)
    assert not set(division.train.ids) & set(division.held_out.ids)
    assert len(division.train) + len(division.held_out) == len(train)


def hub(tmp_path, picture, splits):
    datasets = pytest.importorskip("datasets")
    parts = {}
    for split in splits:
        rows = [{"bytes": picture(f"{split}{i}.png").read_bytes(), "path": None} for i in range(6)]
        features = datasets.Features(
            {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])}
        )
        parts[split] = datasets.Dataset.from_dict({"image": rows, "label": [0, 1] * 3}, features)
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    return f"hf:{tmp_path}/saved"


FORMATS = {"folder": folder, "table": table, "hub": hub}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("val", ["val", "valid", "validation", "dev", "eval"])
def test_val_is_held_out_and_test_is_left_alone(tmp_path, picture, form, val):
    spec = FORMATS[form](tmp_path, picture, ["train", val, "test"])
    division = divide(spec)
    assert (len(division.train), len(division.held_out), division.share) == (6, 6, None)
    assert all("train" in name for name in division.train.ids)
    assert all(val in name for name in division.held_out.ids)
    assert division.warnings == ()
    assert all("test" in name for name in own(spec).load().ids)
    assert all(val in name for name in load(spec, split="val").ids)


@pytest.mark.parametrize("form", FORMATS)
def test_where_there_is_only_test_a_share_of_train_is_held_out(tmp_path, picture, form):
    division = divide(FORMATS[form](tmp_path, picture, ["train", "test"]))
    assert (len(division.train), len(division.held_out), division.share) == (4, 2, 0.2)
    assert all("train" in name for name in (*division.train.ids, *division.held_out.ids))


def test_a_share_can_be_asked_for_instead(tmp_path, picture):
    spec = folder(tmp_path, picture, ["train", "val"])
    division = divide(spec, share=0.34)
    assert (len(division.train), len(division.held_out), division.share) == (4, 2, 0.34)
    with pytest.raises(UserError, match=r"--held-out .* or --held-out-share 0.5, not both"):
        divide(spec, held_out=spec, share=0.5)
    with pytest.raises(UserError, match=r"held-out share 1.0"):
        divide(spec, share=1.0)


def test_data_without_anything_to_train_on_are_refused(tmp_path, picture):
    with pytest.raises(UserError, match=r"unknown split of .*'train': .*val"):
        divide(folder(tmp_path, picture, ["val", "test"]))


def test_images_that_are_in_both_sets_are_counted(tmp_path, picture):
    spec = folder(tmp_path, picture, ["train", "val"])
    (tmp_path / "val" / "a" / "0.png").write_bytes((tmp_path / "train" / "b" / "1.png").read_bytes())
    (warning,) = divide(spec).warnings
    assert warning.startswith("1 of 6 held-out images are also trained on, such as val/a/0.png")
    assert divide(spec, held_out=str(tmp_path / "train")).warnings[0].startswith("6 of 6 held-out images")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(SPLITS), st.sampled_from("ab")), min_size=1, max_size=14),
    st.one_of(st.none(), st.floats(0, 0.9)),
)
def test_training_and_held_out_images_never_overlap(tmp_path_factory, rows, share):
    """Every row is trained on, held out, or in the test split, and in one of them only."""
    root = tmp_path_factory.mktemp("rows")
    for i in range(len(rows)):
        (root / f"{i}.png").write_bytes(b"")  # images are not read
    lines = [f"{i}.png,{label},{split}" for i, (split, label) in enumerate(rows)]
    (root / "t.csv").write_text("\n".join(["image,label,split", *lines]))
    others = {canonical(split) for split, _ in rows if split != "eval"}
    named = {"eval": "test"} if "val" in others and "test" not in others else {}
    meant = [named.get(split, canonical(split)) for split, _ in rows]
    splits = set(meant)
    try:
        division = divide(str(root / "t.csv"), share=share, check=lambda examples: examples)
    except UserError:
        assert "train" not in splits
        return
    train, held_out = set(division.train.ids), set(division.held_out.ids)
    assert not train & held_out
    of = {name: {f"{i}.png" for i, split in enumerate(meant) if split == name} for name in splits}
    if share is None and "val" in splits:
        assert (train, held_out) == (of["train"], of["val"])
    else:
        assert train | held_out == of["train"]
    assert len(division.train) + len(division.held_out) == len(train | held_out)
    assert division.train.classes == division.held_out.classes
    for part in (division.train, division.held_out):
        for name, label in zip(part.ids, part.labels, strict=True):
            assert part.classes[label] == rows[int(name.removesuffix(".png"))][1]


def test_embedded_data_with_a_split_val_use_it():
    division = divide("emoji:twemoji:0")
    assert division.share is None
    assert set(division.held_out.ids) == set(load("emoji:twemoji:0", split="val").ids)
    digits = divide("digits")
    assert (len(digits.train), len(digits.held_out)) == (9_000, 1_000)
    assert np.bincount(digits.held_out.labels).tolist() == [100] * 10


def test_capital_letters_do_not_change_the_test(tmp_path, picture):
    for name in ("Cat/1.png", "Hot_Dog/2.png"):
        picture(name)
    shift = own(str(tmp_path), "id", task=Task(("cat", "hot dog", "ship")))
    assert shift.classes == ("cat", "hot dog", "ship")
    assert shift.load().labels.tolist() == [0, 1]
    assert "'Cat' is taken for 'cat', and 1 more" in shift.load().warnings[0]
    assert own(str(tmp_path), "retain", task=Task(("cat", "hot dog"))).classes == ("Cat", "Hot Dog")
    picture("cat/3.png")
    with pytest.raises(UserError, match="two classes have one name, 'Cat' and 'cat'"):
        own(str(tmp_path), "id", task=Task(("cat", "hot dog")))
