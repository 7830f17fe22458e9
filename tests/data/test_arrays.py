from __future__ import annotations

import numpy as np
import pytest

from tracer.core.errors import UserError
from tracer.data.sources import load

GREY = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6)
COLOUR = np.repeat(GREY[..., None], 3, axis=-1)


@pytest.mark.parametrize(
    "images",
    [
        GREY,
        GREY[..., None],
        COLOUR,
        COLOUR.transpose(0, 3, 1, 2),
        GREY / 255,
        (COLOUR / 255).astype(np.float32),
    ],
)
def test_every_layout_gives_the_same_pixels(tmp_path, images):
    np.savez(tmp_path / "x.npz", images=images, labels=[0, 1, 0, 1])
    examples = load(tmp_path / "x.npz")
    assert all((np.asarray(examples.images[i]) == COLOUR[i]).all() for i in range(4))
    assert examples.classes == ("0", "1")


def test_captions_and_class_names(tmp_path):
    captions = np.array([["a", "b"], ["c", ""], ["d", "d"], ["e", "f"]])
    np.savez(
        tmp_path / "x.npz", x=0, images=GREY, text=captions, y=[2, 0, 2, 0], classes=["cat", "dog", "owl"]
    )
    examples = load(tmp_path / "x.npz")
    assert examples.captions == [("a", "b"), ("c",), ("d",), ("e", "f")]
    assert examples.classes == ("cat", "dog", "owl")
    assert examples.labels.tolist() == [2, 0, 2, 0]
    assert examples.detected[:3] == ("image array: images", "caption array: text", "label array: y")
    assert load(tmp_path / "x.npz", classes=["a", "b", "c", "d"]).classes == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": [1]}, "no column that looks like an image path: .*'labels'"),
        ({"images": GREY}, "no column that looks like a caption or a label"),
        ({"images": GREY[0], "labels": [1]}, r"found the shape \(5, 6\)"),
        ({"images": GREY.astype(int), "labels": [0, 1, 0, 1]}, "expected uint8 .*found int64"),
        ({"images": GREY.astype(float), "labels": [0, 1, 0, 1]}, "between 0 and 1"),
        ({"images": GREY, "labels": [0, 1]}, "4 images, but labels has the shape"),
        ({"images": GREY, "labels": 3}, "4 images, but labels has the shape"),
        ({"images": GREY, "labels": [0, 1, 0, 7], "classes": ["a", "b"]}, "label 7 lies outside the 2 class"),
        ({"images": GREY, "labels": [-1, 1, 0, 1], "classes": ["a", "b"]}, "label -1 is none of the 2"),
        ({"images": GREY, "labels": np.array([{}, 1, 2, 3], object)}, "without pickles"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError, match=message):
        load(tmp_path / "x.npz")


def test_files_that_are_no_archives_are_named(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 but not really")
    with pytest.raises(UserError, match=r"x\.npz cannot be read as a NumPy archive"):
        load(tmp_path / "x.npz")
    np.save(tmp_path / "x.npy", GREY)
    with pytest.raises(UserError, match="holds one array"):
        load(tmp_path / "x.npy")


@pytest.mark.parametrize("names", [("{}_{}",), ("{1}_{0}",)])
@pytest.mark.parametrize(("images", "labels"), [("x", "y"), ("images", "labels")])
def test_an_archive_may_hold_its_splits_as_arrays(tmp_path, names, images, labels):
    """As the archives of Keras (x_train, y_train) and MedMNIST (train_images, train_labels) do."""
    (form,) = names
    rows = {"train": [0, 1], "val": [2], "test": [3]}
    arrays = {form.format(images, split): GREY[own] for split, own in rows.items()}
    arrays |= {form.format(labels, split): np.array(own) % 3 for split, own in rows.items()}
    np.savez(tmp_path / "x.npz", **arrays)
    for split, own in rows.items():
        part = load(tmp_path / "x.npz", split=split)
        assert [np.asarray(part.images[i])[0, 0, 0] for i in range(len(part))] == GREY[own, 0, 0].tolist()
        assert part.labels.tolist() == [i % 3 for i in own]
        assert part.classes == ("0", "1", "2")


def test_the_splits_of_an_archive_must_fit_together(tmp_path):
    np.savez(tmp_path / "x.npz", x_train=GREY, y_train=[0, 1, 0, 1], x_test=GREY)
    with pytest.raises(UserError, match="train and test have different arrays"):
        load(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "labels", [[[2], [0], [2], [1]], np.eye(3)[[2, 0, 2, 1]], np.eye(3, dtype=int)[[2, 0, 2, 1]]]
)
def test_labels_in_a_column_or_one_hot(tmp_path, labels):
    np.savez(tmp_path / "x.npz", images=GREY, labels=labels)
    assert load(tmp_path / "x.npz").labels.tolist() == [2, 0, 2, 1]


def test_several_labels_an_image_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", images=GREY, labels=[[1, 1], [0, 1], [1, 0], [0, 1]])
    with pytest.raises(UserError, match=r"shape \(4, 2\) and are not one-hot: give each image one label"):
        load(tmp_path / "x.npz")


def test_bytes_of_0_and_1_are_refused_because_they_are_black(tmp_path):
    images = np.eye(4, dtype=np.uint8)[None].repeat(2, axis=0)
    np.savez(tmp_path / "masks.npz", images=images, labels=np.array(["cat", "dog"]))
    with pytest.raises(UserError, match=r"masks.npz, images: the values are 0 and 1, black to the eye"):
        load(tmp_path / "masks.npz")
    np.savez(tmp_path / "masks.npz", images=images.astype(np.float32), labels=np.array(["cat", "dog"]))
    assert np.asarray(load(tmp_path / "masks.npz").images[0]).max() == 255, "floats count up to 1"
