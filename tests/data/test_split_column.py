"""A column that says which split a row belongs to: in archives and shards as in tables, and never half understood."""

import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.division import divide
from tracer.data.sources import load

CELLS = ["train", "Train ", "training", "TEST", "testing", "val"]
SPLITS = {"train": [0, 1, 2], "test": [3, 4], "val": [5]}


def archive(folder, cells):
    path = folder / "a.npz"
    images = np.arange(len(cells), dtype=np.uint8).reshape(-1, 1, 1, 1) * np.ones((1, 4, 4, 3), np.uint8)
    np.savez(path, images=images, labels=np.array(["cat", "dog"] * 3), split=np.array(cells))
    return path


def shard(folder, cells):
    path = folder / "a.tar"
    with tarfile.open(path, "w") as file:
        for i, cell in enumerate(cells):
            picture = io.BytesIO()
            Image.new("L", (4, 4), i).save(picture, "PNG")
            fields = json.dumps({"label": ("cat", "dog")[i % 2], "split": cell}).encode()
            for ending, content in (("png", picture.getvalue()), ("json", fields)):
                member = tarfile.TarInfo(f"{i}.{ending}")
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
    return path


def table(folder, cells):
    for i in range(len(cells)):
        Image.new("L", (4, 4), i).save(folder / f"{i}.png")
    path = folder / "a.csv"
    rows = [f"{i}.png,{('cat', 'dog')[i % 2]},{cell}\n" for i, cell in enumerate(cells)]
    path.write_text("".join(["image,label,split\n", *rows]))
    return path


def pixels(examples):
    return [int(np.asarray(examples.images[i]).max()) for i in range(len(examples))]


@pytest.fixture(params=[archive, shard, table])
def written(request, tmp_path):
    return lambda cells: request.param(tmp_path, cells)


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


@pytest.mark.parametrize("cells", [["train set"] * 3 + ["test set"] * 3, ["train_1", "test_1"] * 3])
def test_names_that_allude_to_splits_are_not_passed_over(written, cells):
    with pytest.raises(UserError, match="holds other names than train, val and test"):
        load(written(cells))


def test_a_column_of_something_else_is_a_warning_and_folds_are_none(written):
    examples = load(written(["red", "blue"] * 3))
    assert len(examples) == 6
    assert any("all rows are used" in warning for warning in examples.warnings)
    assert not load(written(["0", "1"] * 3)).warnings
