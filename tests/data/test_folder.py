from __future__ import annotations

import pytest

from tracer.core.errors import UserError
from tracer.data.options import canonical
from tracer.data.sources import load


def test_classes_are_the_first_folders_at_any_depth(picture, tmp_path):
    for name in ("red_fox/1.PNG", "red_fox/den/2.png", "owl/barn/old/3.jpeg", ".thumbs/4.png", "owl/._5.png"):
        picture(name)
    (tmp_path / "owl" / "notes.md").write_text("no image")
    (tmp_path / "owl" / "png").write_text("no image either")
    examples = load(tmp_path)
    assert examples.classes == ("owl", "red fox")
    assert examples.ids == ["owl/barn/old/3.jpeg", "red_fox/1.PNG", "red_fox/den/2.png"]
    assert examples.labels.tolist() == [0, 1, 1]
    assert examples.splits == ()


def test_no_split_folders_are_found_where_there_are_none(picture, tmp_path):
    for name in ("cat/1.png", "dog/2.png"):
        picture(name)
    assert load(tmp_path).detected == ()


@pytest.mark.parametrize("held_out", ["val", "validation", "test"])
def test_split_folders_share_one_list_of_classes(picture, tmp_path, held_out):
    for name in ("train/bat/1.png", "train/cat/2.png", f"{held_out}/cat/3.png", f"{held_out}/dog/4.png"):
        picture(name)
    train, test = load(tmp_path), load(tmp_path, split="test")
    assert train.classes == test.classes == ("bat", "cat", "dog")
    assert train.labels.tolist() == load(tmp_path, split="train").labels.tolist() == [0, 1]
    assert test.labels.tolist() == load(tmp_path, split="val").labels.tolist() == [1, 2]
    assert train.splits == test.splits
    assert canonical(held_out) in train.splits
    assert any(note.startswith("split folders") for note in train.detected)


@pytest.mark.parametrize(
    ("tops", "sizes"),
    [
        (("training", "valid", "testing"), (1, 1, 1)),
        (("TRAIN", "Dev", "Test"), (1, 1, 1)),
        (
            ("train", "validation", "eval"),
            (1, 1, 1),
        ),  # eval is for the test if there is another validation split
        (("Train", "Eval"), (1, 1, 1)),  # and to decide by if there is none
        (("train", "val", "eval", "test"), (1, 2, 1)),
    ],
)
def test_other_names_of_splits(picture, tmp_path, tops, sizes):
    for top in tops:
        picture(f"{top}/bat/1.png")
    parts = [load(tmp_path, split=split) for split in ("train", "val", "test")]
    assert tuple(map(len, parts)) == sizes
    assert [part.ids[-1].partition("/")[0] for part in parts[:2]] == list(tops[:2])
    assert parts[2].ids[0].startswith(tops[-1])


def test_trains_may_be_a_class(picture, tmp_path):
    for name in ("train/1.png", "car/2.png"):
        picture(name)
    assert load(tmp_path).classes == ("car", "train")


def test_a_split_that_is_not_there_is_named(picture, tmp_path):
    for name in ("train/bat/1.png", "train/cat/2.png", "val/cat/3.png"):
        picture(name)
    with pytest.raises(UserError, match=r"unknown split of .*'tset': "):
        load(tmp_path, split="tset")
    (tmp_path / "train").rename(tmp_path / "test")
    with pytest.raises(UserError, match=r"unknown split of .*'train'"):
        load(tmp_path, split="train")


def test_captions_lie_beside_the_images(picture, tmp_path):
    for name in ("1.png", "2.png"):
        picture(name)
    (tmp_path / "1.txt").write_text("one\n\n two \none\n", encoding="utf-8")
    (tmp_path / "2.txt").write_bytes(b"\xef\xbb\xbfthree")
    examples = load(tmp_path)
    assert examples.captions == [("one", "two"), ("three",)]
    assert not examples.labelled
    (tmp_path / "2.txt").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"2\.txt cannot be read"):
        load(tmp_path)


def test_images_outside_the_class_folders_are_counted(picture, tmp_path):
    for name in ("a/1.png", "b/2.png", "stray.png"):
        picture(name)
    examples = load(tmp_path)
    assert examples.ids == ["a/1.png", "b/2.png"]
    assert [(each.count, each.what) for each in examples.left_out] == [
        (1, "images outside the class folders")
    ]


def test_links_are_followed_but_not_in_circles(picture, tmp_path):
    picture("data/a/1.png")
    picture("elsewhere/2.png")
    (tmp_path / "data" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "c").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "a" / "back").symlink_to(tmp_path / "data")
    assert load(tmp_path / "data").ids == ["a/1.png", "b/2.png", "c/2.png"]


def test_a_table_called_metadata_describes_its_folder(picture, tmp_path):
    picture("1.png")
    (tmp_path / "metadata.csv").write_text("file_name,text\n1.png,a newt\n")
    assert load(tmp_path).captions == [("a newt",)]


def test_class_names_can_be_given(picture, tmp_path):
    for name in ("n01/1.png", "n02/2.png"):
        picture(f"images/{name}")
    (tmp_path / "names.json").write_text('{"n02": "otter", "n01": "heron", "n03": "newt"}')
    examples = load(tmp_path / "images", classes=tmp_path / "names.json")
    assert examples.classes == ("otter", "heron", "newt")
    assert examples.labels.tolist() == [1, 0]
    with pytest.raises(UserError, match="lacks 'n02', and must hold every class"):
        load(tmp_path / "images", classes={"n01": "heron"})


def test_what_is_wrong_is_said(tmp_path, picture):
    with pytest.raises(UserError, match=r"no images in .*looked for .*jpg"):
        load(tmp_path)
    picture("a/1.png")
    with pytest.raises(UserError, match="--caption-column means nothing for a folder of images"):
        load(tmp_path, caption="text")
    with pytest.raises(UserError, match=r"no file or folder .*photoes"):
        load(tmp_path / "photoes")
    with pytest.raises(UserError, match="unknown data 'digits:coulour': did you mean digits:colour"):
        load("digits:coulour")
    with pytest.raises(UserError, match="File name too long"):
        load("x" * 5000)


def test_embedded_names_and_their_splits():
    assert len(load("digits")) == 10_000
    assert len(load("digits", split="test")) == len(load("digits:flipped", split="val")) == 2_000
    assert load("digits:colour", split="test").classes == ("red", "blue")
    assert load("digits:group", split="test").classes == ("low", "high")
    assert load("digits", split="test").splits == ("train", "test")


def test_a_folder_with_the_name_of_a_built_in_set_is_not_guessed(picture, tmp_path, monkeypatch):
    for name in ("digits/a/1.png", "digits/b/2.png"):
        picture(name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"digits is a built-in .*: write \./digits or embedded:digits"):
        load("digits")
    assert load("./digits").classes == ("a", "b")
    assert len(load("embedded:digits")) == 10_000
    assert load("embedded:emoji:twemoji:0").classes == load("emoji:twemoji:0").classes
    assert len(load("digits:colour", split="test")) == 2_000  # no file has this name
    with pytest.raises(UserError, match="unknown data 'digit': did you mean digits"):
        load("embedded:digit")


def test_embedded_classes_can_be_reordered():
    straight, reverse = load("digits", split="test"), load("digits", split="test", classes=list("9876543210"))
    assert reverse.classes == tuple("9876543210")
    assert (reverse.labels == 9 - straight.labels).all()


def test_images_of_kinds_that_are_not_read_are_counted(picture, tmp_path):
    picture("cat/1.png")
    picture("dog/1.png")
    assert load(tmp_path).warnings == ()
    for name in ("cat/2.JXL", "cat/3.jxl", "dog/4.svg", "dog/notes.md"):
        (tmp_path / name).write_bytes(b"x")
    (warning,) = load(tmp_path).warnings
    assert "are left out (2 .jxl, 1 .svg): convert them to JPEG or PNG" in warning
    for file in tmp_path.rglob("*.png"):
        file.unlink()
    with pytest.raises(UserError, match=r"no images in .* \(2 \.jxl, 1 \.svg\): convert them"):
        load(tmp_path)


def test_an_image_beside_the_splits_is_left_out_and_said(tmp_path, picture):
    for name in ("train/cat/1.png", "train/dog/1.png", "val/cat/2.png", "val/dog/2.png", "preview.png"):
        picture(name)
    for split in ("train", "val"):
        examples = load(tmp_path, split=split)
        assert len(examples) == 2
        assert [str(each) for each in examples.left_out] == [
            "images beside the split folders: 1, preview.png"
        ]
