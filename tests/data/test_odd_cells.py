"""Cells that are empty, contradict each other or mean something else than they say: refused, or named in a warning."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracer.core.errors import UserError
from tracer.data.classes import classes
from tracer.data.formats.memory import from_object, register
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import divide

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), np.uint8)
NAMES = ["cat", "dog"]


@pytest.fixture
def table(tmp_path, picture):
    """A function that writes four labelled or captioned images as a table, and returns its path."""
    for i in range(4):
        picture(f"{i}.png")

    def write(cells, column="label", name="t.csv", mark=","):
        rows = [f"image{mark}{column}", *(f"{i}.png{mark}{cell}" for i, cell in enumerate(cells))]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("cell", ["nan", "NaN", "None", "null", "N/A"])
def test_a_class_or_caption_that_looks_like_an_empty_cell_is_named(table, cell):
    assert any(repr(cell) in each for each in load(table(["cat", "dog", cell, "cat"])).warnings)
    captions = load(table(["a cat", "a dog", cell, "a ship"], "caption")).warnings
    assert any("2.png" in each and cell in each for each in captions)
    assert not load(table(["cat", "dog", "banana", "cat"])).warnings


def test_a_name_that_cannot_be_seen_is_no_name(table):
    with pytest.raises(UserError, match="empty name"):
        scan(load(table(["cat", "dog", "\u200b", "cat"])))


def test_numbers_among_names_and_classes_that_are_only_held_out_are_named(tmp_path, picture):
    rows = []
    for i in range(8):
        picture(f"{i}.png")
        label, split = (str(i % 2), "train") if i < 4 else (NAMES[i % 2], "val")
        rows.append(f"{i}.png,{label},{split}")
    (tmp_path / "t.csv").write_text("\n".join(["image,label,split", *rows]))
    warnings = divide(str(tmp_path / "t.csv")).warnings
    assert any("numbers and others names" in each for each in warnings)
    assert any("no image of the class 'cat' and 1 more is trained on" in each for each in warnings)


def test_a_class_that_is_only_in_the_test_split_is_named_before_training(tmp_path, picture):
    for i, name in enumerate(("train/cat", "train/dog", "test/cat", "test/dog")):
        for copy in range(3):
            picture(f"{name}/{i}{copy}.png")
    assert not divide(str(tmp_path)).warnings
    picture("test/ship/9.png")
    (warning,) = divide(str(tmp_path)).warnings
    assert "no image of the class 'ship' is trained on" in warning


def test_one_image_as_two_classes_is_named_before_training(tmp_path, picture):
    for name in ("cat/1.png", "cat/2.png", "cat/3.png", "dog/1.png", "dog/2.png", "dog/3.png"):
        picture(name)
    assert not divide(str(tmp_path), share=0).warnings
    shutil.copy(tmp_path / "cat/1.png", tmp_path / "dog/9.png")
    (warning,) = divide(str(tmp_path), share=0).warnings
    assert "more than one class, such as cat/1.png and dog/9.png" in warning


@pytest.mark.parametrize("mark", [",", "\t"])
def test_a_quotation_mark_that_is_meant_literally_takes_in_no_rows(table, mark):
    """Where a text opens with one and a later text ends with one, all rows between would be one caption."""
    path = table(['"big cat', "dog", 'ship"', "sea"], "caption", "t.tsv" if mark == "\t" else "t.csv", mark)
    if mark == ",":
        with pytest.raises(UserError, match="takes in whole rows"):
            load(path)
    else:
        assert load(path).captions == [('"big cat',), ("dog",), ('ship"',), ("sea",)]
    assert len(load(table(['"one\ntwo, three\n\nfour"', "dog", "a\n", "sea"], "caption"))) == 4


def test_a_key_that_is_there_twice_is_refused_in_json(tmp_path, picture):
    picture("a.png")
    (tmp_path / "t.jsonl").write_text('{"image": "a.png", "label": "cat", "label": "dog"}')
    with pytest.raises(UserError, match="'label' is there twice"):
        load(tmp_path / "t.jsonl")
    for name in ("x/a.png", "y/a.png"):
        picture(f"data/{name}")
    (tmp_path / "classes.json").write_text('{"x": "cat", "y": "dog", "x": "ship"}')
    with pytest.raises(UserError, match="'x' is there twice"):
        load(tmp_path / "data", classes=str(tmp_path / "classes.json"))


def test_negative_and_broken_numbers_do_not_take_the_names_in_order():
    for labels in ([-1, 0, 0, -1], [0, 0.5, 0.5, 0]):
        with pytest.raises(UserError, match="count from 0"):
            from_object((list(PIXELS), labels), NAMES)


def test_names_that_are_given_in_order_are_said(tmp_path, picture):
    for name in ("x/a.png", "y/a.png"):
        picture(f"data/{name}")
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    (warning,) = load(tmp_path / "data", classes=str(tmp_path / "names.txt")).warnings
    assert "x is 'cat' and y is 'dog'" in warning


@pytest.mark.parametrize("label", [None, float("nan"), float("inf"), 1.5, [1], np.array([1, 0])])
def test_labels_from_python_that_are_none_are_refused(label):
    with pytest.raises(UserError):
        scan(from_object((list(PIXELS), [0, 1, label, 1]), NAMES))


@pytest.mark.parametrize("caption", [None, "", " ", float("nan"), [], [None], ["a", ["b"]]])
def test_captions_from_python_that_are_none_are_refused(caption):
    with pytest.raises(UserError):
        scan(from_object({"image": list(PIXELS), "caption": ["a", "b", caption, "c"]}))


def test_captions_and_labels_from_python_are_not_mixed():
    with pytest.raises(UserError, match="captions or labels"):
        from_object(list(zip(PIXELS, ["a cat", 1, "a dog", "a ship"], strict=True)))
    with pytest.raises(UserError, match="more than one of label, labels"):
        from_object({"image": list(PIXELS), "label": [0, 1, 0, 1], "labels": [1, 0, 1, 0]}, NAMES)


def test_data_with_other_pixels_have_another_name(tmp_path):
    """Otherwise the held-out set would replace the training set under its name."""
    names = []
    for pixels in (PIXELS, PIXELS[::-1]):
        np.savez(tmp_path / "a.npz", images=pixels, labels=np.array(["cat", "dog"] * 2))
        names += [register(load(tmp_path / "a.npz")), register(scan(load(tmp_path / "a.npz")))]
    assert names[0] == names[1] != names[2] == names[3]


@pytest.mark.parametrize("labels", [[0, 2], ["0", "1"], [0.0, 1.0]])
def test_labels_of_parquet_outside_of_its_classes_are_refused(tmp_path, labels):
    features = {"label": {"_type": "ClassLabel", "names": NAMES}}
    metadata = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    table = pa.table({"image": ["a.png", "b.png"], "label": labels}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(UserError, match="none of its 2 classes"):
        load(tmp_path / "t.parquet")


def test_what_is_no_file_is_not_read_as_an_image(tmp_path, picture):
    """A pipe would be waited for, and a device read, without an end."""
    for name in ("cat/1.png", "dog/1.png"):
        picture(name)
    os.mkfifo(tmp_path / "cat/2.png")
    (tmp_path / "dog/2.png").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="it is no file"):
        scan(load(tmp_path))


def test_bytes_and_characters_that_are_no_text_do_not_make_two_classes_one(tmp_path, picture):
    for name in "ab":
        picture(f"{name}.png")
    (tmp_path / "t.csv").write_bytes(b"image,label\na.png,caf\x81\nb.png,caf\x8d\n")
    with pytest.raises(UserError, match="neither UTF-8 nor cp1252"):
        load(tmp_path / "t.csv")
    rows = [{"image": "a.png", "label": "\ud800"}, {"image": "b.png", "label": "\ud801"}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert len(load(tmp_path / "t.jsonl").classes) == 2


@pytest.mark.parametrize(
    ("members", "problem"),
    [({"cls": b"caf\xe9"}, "not UTF-8"), ({"cls": b"cat", "json": b'{"cls": "dog"}'}, "another 'cls'")],
)
def test_members_of_a_shard_that_are_no_text_or_contradict_each_other_are_refused(
    tmp_path, picture, members, problem
):
    with tarfile.open(tmp_path / "x.tar", "w") as shard:
        shard.add(picture("a.png"), "a.png")
        for ending, content in members.items():
            member = tarfile.TarInfo(f"a.{ending}")
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
    with pytest.raises(UserError, match=problem):
        load(tmp_path / "x.tar")


@pytest.mark.parametrize(
    ("keys", "several"),
    [
        (["bird", "cat", "cat|dog", "dog"], "cat|dog"),
        (["cat;pet", "dog;pet"], "cat;pet"),
        (["cat", "cat, dog", "dog"], "cat, dog"),
        (["['cat', 'pet']", "['dog']"], "['cat', 'pet']"),
        (["crane, bird", "kite, bird"], ""),
        (["salt & pepper", "salt"], ""),
        (["rock|paper", "cat"], ""),
    ],
)
def test_several_labels_in_one_cell_are_warned_of(keys, several):
    warning = classes(keys).warning
    assert warning.startswith(f"the class {several!r} looks like several labels") if several else not warning
