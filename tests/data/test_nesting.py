"""The level of a folder that holds the classes: another one is refused or warned of, with the folder to give."""

from __future__ import annotations

import re

import pytest

from tracer.core.errors import UserError
from tracer.data.sources import load


def refused(picture, tmp_path, paths) -> str:
    for path in paths:
        picture(path)
    with pytest.raises(UserError) as error:
        load(tmp_path)
    return str(error.value)


def below(tops, names=("cat", "dog")):
    return [f"{top}/{name}/{i}.png" for top in tops for name in names for i in range(2)]


def test_one_folder_with_the_classes_in_it(picture, tmp_path):
    message = refused(picture, tmp_path, below(["images"]))
    assert (
        message
        == f"{tmp_path} has one class, images, with the folders cat and dog in it: give {tmp_path}/images"
    )
    assert load(tmp_path / "images").classes == ("cat", "dog")


def test_one_folder_in_each_split(picture, tmp_path):
    message = refused(picture, tmp_path, below(["train/images", "val/images"]))
    assert f"give --data {tmp_path}/train/images" in message


@pytest.mark.parametrize(
    "tops",
    [("photos", "test-photos"), ("photos_train", "photos_test"), ("Test set", "train set"), ("te", "tr")],
)
def test_data_sets_side_by_side(picture, tmp_path, tops):
    message = refused(picture, tmp_path, below(tops))
    training = next(top for top in tops if not {"test", "te"} & {top, *re.split(r"\W|_", top.lower())})
    assert message.endswith(f"so they are data sets, not classes: give {tmp_path / training}")


def test_splits_beside_something_else(picture, tmp_path):
    message = refused(picture, tmp_path, below(["train", "test", "extra"]))
    assert re.search(r"holds test and train beside extra: are they splits or classes\?", message)


def test_views_of_each_class_are_a_warning_only(picture, tmp_path):
    for path in below(["train_station", "bus_station"], ("day", "night")):
        picture(path)
    examples = load(tmp_path)
    assert examples.classes == ("bus station", "train station")
    (warning,) = examples.warnings
    assert warning.endswith(
        f"hold the same folders, day and night: if these are the classes, give {tmp_path}/bus_station"
    )


def test_deeper_folders_that_differ_are_no_matter(picture, tmp_path):
    for path in ("owl/barn/1.png", "owl/2.png", "fox/red/1.png", "fox/arctic/1.png"):
        picture(path)
    assert load(tmp_path).warnings == ()


def test_classes_several_folders_down(picture, tmp_path):
    message = refused(picture, tmp_path, below(["data/images"]))
    assert message.endswith(f"with the folders cat and dog in data/images: give {tmp_path}/data/images")


def test_splits_inside_the_classes(picture, tmp_path):
    message = refused(picture, tmp_path, below(["cat", "dog"], ("train", "val")))
    assert f"such as cat/train: put the splits outside, as in {tmp_path}/train/cat" in message


@pytest.mark.parametrize("tops", [("train2017", "val2017", "test2017"), ("train_set", "dev_set")])
def test_numbered_splits_with_what_to_hold_out(picture, tmp_path, tops):
    message = refused(picture, tmp_path, below(tops))
    assert message.endswith(f"give {tmp_path / tops[0]} --held-out {tmp_path / tops[1]}")


def test_numbered_classes_with_the_same_views(picture, tmp_path):
    for path in below(["type1", "type2"], ("left", "right")):
        picture(path)
    assert load(tmp_path).classes == ("type1", "type2")


@pytest.mark.parametrize("tops", [("train", "extra", "x"), ("eval", "extra"), ("Testing", "x")])
def test_folders_with_the_same_classes_are_refused_if_one_is_named_after_a_split(picture, tmp_path, tops):
    """Read as classes with a warning, `train` and `extra` would be what the model learns to tell apart."""
    message = refused(picture, tmp_path, below(tops))
    assert re.search(r"hold the same folders, cat and dog: give .* if they are data sets, or put", message)
