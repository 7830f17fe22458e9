"""A column that says which split a row belongs to: in archives and shards as in tables, and never half understood."""

import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.sources import load
from tracer.data.split import divide

CELLS = ["train", "Train ", "training", "TEST", "testing", "val"]
SPLITS = {"train": [0, 1, 2], "test": [3, 4], "val": [5]}


def archive(folder, cells, name="split"):
    path = folder / "a.npz"
    images = np.arange(len(cells), dtype=np.uint8).reshape(-1, 1, 1, 1) * np.ones((1, 4, 4, 3), np.uint8)
    np.savez(path, images=images, labels=np.array(["cat", "dog"] * 3), **{name: np.array(cells)})
    return path


def shard(folder, cells, name="split"):
    path = folder / "a.tar"
    with tarfile.open(path, "w") as file:
        for i, cell in enumerate(cells):
            picture = io.BytesIO()
            Image.new("L", (4, 4), i).save(picture, "PNG")
            fields = json.dumps({"label": ("cat", "dog")[i % 2], name: cell}).encode()
            for ending, content in (("png", picture.getvalue()), ("json", fields)):
                member = tarfile.TarInfo(f"{i}.{ending}")
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
    return path


def table(folder, cells, name="split"):
    for i in range(len(cells)):
        Image.new("L", (4, 4), i).save(folder / f"{i}.png")
    path = folder / "a.csv"
    rows = [f"{i}.png,{('cat', 'dog')[i % 2]},{cell}\n" for i, cell in enumerate(cells)]
    path.write_text("".join([f"image,label,{name}\n", *rows]))
    return path


def pixels(examples):
    return [int(np.asarray(examples.images[i]).max()) for i in range(len(examples))]


@pytest.fixture(params=[archive, shard, table])
def written(request, tmp_path):
    return lambda cells, name="split": request.param(tmp_path, cells, name)


def test_each_split_holds_its_own_rows(written):
    path = written(CELLS)
    for split, rows in SPLITS.items():
        examples = load(path, split=split)
        assert pixels(examples) == rows
        assert examples.splits == ("train", "val", "test")
        assert [examples.classes[label] for label in examples.labels] == [("cat", "dog")[i % 2] for i in rows]


def test_test_is_never_trained_on(written):
    division = divide(str(written(CELLS)))
    assert pixels(division.train) == SPLITS["train"]
    assert pixels(division.held_out) == SPLITS["val"]


@pytest.mark.parametrize("blank", ["", " ", "unknown", "train set"])
def test_one_row_without_a_split_is_refused(written, blank):
    with pytest.raises(UserError, match=r"1 of 6 rows have no split in the column split \(row 3\)"):
        load(written(["train", "train", blank, "test", "test", "test"]))


@pytest.mark.parametrize(
    "cells", [["tr", "te"] * 3, ["train set"] * 3 + ["test set"] * 3, ["train_1", "test_1"] * 3]
)
def test_names_that_allude_to_splits_are_not_passed_over(written, cells):
    with pytest.raises(UserError, match="holds other names than train, val and test"):
        load(written(cells))


def test_a_column_of_something_else_is_a_warning_and_folds_are_none(written):
    examples = load(written(["red", "blue"] * 3))
    assert len(examples) == 6
    assert any("all rows are used" in warning for warning in examples.warnings)
    assert load(written(["0", "1"] * 3)).warnings
    assert not load(written(["0", "1"] * 3, "fold")).warnings


@pytest.mark.parametrize("name", ["data_split", "phase", "ImageSet", "dataset", "x"])
def test_a_column_that_names_splits_is_one_whatever_it_is_called(written, name):
    division = divide(str(written(CELLS, name)))
    assert pixels(division.train) == SPLITS["train"]
    assert pixels(division.held_out) == SPLITS["val"]


@pytest.mark.parametrize(
    "cells",
    [["train", "test", "extra"] * 2, ["test", "", ""] * 2, ["test", " ", " "] * 2, ["train", "val", ""] * 2],
)
def test_such_a_column_is_not_half_understood_either(written, cells):
    with pytest.raises(UserError, match="rows have no split in the column phase"):
        load(written(cells, "phase"))


@pytest.mark.parametrize("name", ["is_test", "isTrain", "validation", "test-set"])
@pytest.mark.parametrize("cells", [["0", "1"], ["True", "False"], ["yes", ""]])
def test_a_test_set_marked_by_yes_and_no_is_not_trained_on(written, name, cells):
    with pytest.raises(UserError, match=f"the column {name} seems to say which rows are for a test"):
        load(written(cells * 3, name))


@pytest.mark.parametrize("cells", [["car", "train", "bus"] * 2, ["train"] * 6, ["0.3", "0.5", "1"] * 2])
def test_other_columns_are_left_alone(written, cells):
    assert load(written(cells, "test_vehicle")).splits == ()


@pytest.mark.parametrize("cell", ["ｔｅｓｔ", "te\u200bst", "\ufefftest\u00a0", "TEST\u200e"])
def test_invisible_characters_and_wide_letters_change_no_split(written, cell):
    assert pixels(load(written(["train"] * 5 + [cell]), split="test")) == [5]


def test_two_columns_of_splits_must_agree(tmp_path):
    path = table(tmp_path, CELLS)
    header, *rows = path.read_text().splitlines()
    for second, match in ((CELLS, None), (["train"] * 5 + ["test"], "name different splits: rename one")):
        lines = [f"{header},Subset", *(f"{row},{cell}" for row, cell in zip(rows, second, strict=True))]
        path.write_text("\n".join(lines))
        if match is None:
            assert pixels(load(path)) == SPLITS["train"]
        else:
            with pytest.raises(UserError, match=match):
                load(path)


@pytest.mark.parametrize(
    "cells",
    [
        ["Training", "PublicTest", "PrivateTest"],
        ["train_1", "test-1", "val-1"],
        ["TrainSet", "TestSet"],
        ["tr", "te"],
    ],
)
def test_names_of_splits_with_more_to_them_are_refused_in_any_column(written, cells):
    """FER-2013 has a column Usage: all of its rows were trained on, tests among them."""
    path = written((cells * 6)[:6], "Usage")
    with pytest.raises(UserError, match=r"the column Usage seems to name splits.* write a column split"):
        divide(str(path))


def test_a_column_that_says_train_and_another_word_is_warned_of(written):
    division = divide(str(written(["train", "holdout"] * 3, "part")))
    assert any(
        "some rows say train and others 'holdout'; all rows are used" in each for each in division.warnings
    )
    division = divide(str(written(["red", "green"] * 3, "part")))
    assert not any("part" in each for each in division.warnings)


def test_a_table_of_images_in_folders_of_several_splits_is_warned_of(tmp_path, picture):
    rows = [f"{picture(f'{split}/{i}.png')},{'ab'[i % 2]}" for split in ("train", "Test") for i in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(["image,label", *rows]))
    (warning,) = load(tmp_path / "t.csv").warnings
    assert "images lie in folders Test and train, and all are used" in warning
    (tmp_path / "t.csv").write_text("\n".join(["image,label", *rows[:4]]))
    assert not load(tmp_path / "t.csv").warnings
