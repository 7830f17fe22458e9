from __future__ import annotations

import gzip
import hashlib
from itertools import pairwise

import numpy as np
import pytest

from tracer.core.errors import UserError
from tracer.data.embedded.digits import coloured_digits, digits
from tracer.data.examples import Pixels
from tracer.data.formats.idx import FILES, idx
from tracer.data.sources import load


def pixels(examples):
    assert isinstance(examples.images, Pixels)
    return examples.images.array


@pytest.mark.parametrize(("split", "each"), [("train", 1000), ("test", 200)])
def test_digits_are_balanced_grey_and_distinct(split, each):
    examples = digits(split)
    assert np.bincount(examples.labels).tolist() == [each] * 10
    assert examples.classes == tuple("0123456789")
    array = pixels(examples)
    assert array.shape == (10 * each, 28, 28, 3)
    assert (array == array[..., :1]).all()
    assert len(np.unique(array[..., 0].reshape(len(array), -1), axis=0)) == len(array)
    assert not examples.captioned


def test_coloured_keeps_the_grey_values_in_one_channel():
    painted, grey = pixels(coloured_digits("test")), pixels(digits("test"))[..., 0]
    assert (painted[..., 1] == 0).all()
    assert (np.minimum(painted[..., 0], painted[..., 2]) == 0).all()
    assert (painted.max(axis=-1) == grey).all()


def test_colour_mostly_predicts_the_group():
    colour, group = coloured_digits(task="colour").labels, coloured_digits(task="group").labels
    assert abs((colour == group).mean() - 0.95) < 0.01
    assert (group == (digits().labels >= 5)).all()


def test_colour_labels_are_the_painted_colour():
    painted = coloured_digits("test", task="colour")
    red = pixels(painted)[..., 0].any(axis=(1, 2))
    assert painted.classes == ("red", "blue")
    assert (painted.labels == ~red).all()


def test_flipping_exchanges_red_and_blue_and_nothing_else():
    straight, flipped = coloured_digits("test"), coloured_digits("test", flipped=True)
    assert (pixels(straight) == pixels(flipped)[..., ::-1]).all()
    assert (straight.labels == flipped.labels).all()
    assert (
        coloured_digits("test", task="colour").labels
        != coloured_digits("test", task="colour", flipped=True).labels
    ).all()


def test_paint_is_a_function_of_its_arguments_and_shows_in_the_fingerprint():
    assert (pixels(coloured_digits("test")) == pixels(coloured_digits("test"))).all()
    variants = [
        coloured_digits("test"),
        coloured_digits("test", flipped=True),
        digits("test"),
    ]
    prints = [each.fingerprint for each in variants]
    assert all(a != b for a, b in pairwise(sorted(prints)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: digits("tset"), "unknown split 'tset': did you mean test"),
        (lambda: coloured_digits(task="color"), "unknown task 'color': did you mean colour"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(UserError, match=message):
        wrong()


def test_idx_reads_what_it_can_verify(tmp_path, monkeypatch):
    images, labels = np.arange(2 * 28 * 28, dtype=np.int64).astype(np.uint8).reshape(2, 28, 28), bytes([7, 3])
    headers = [np.array(header, ">u4").tobytes() for header in ([0x0803, 2, 28, 28], [0x0801, 2])]
    stored = {"images": headers[0] + images.tobytes(), "labels": headers[1] + labels}
    known = tuple((name, hashlib.sha256(content).hexdigest()) for name, content in stored.items())
    monkeypatch.setitem(FILES, "test", known)
    (tmp_path / "images.gz").write_bytes(gzip.compress(stored["images"]))
    (tmp_path / "labels").write_bytes(stored["labels"])
    examples = idx(tmp_path, "test")
    assert examples.labels.tolist() == [7, 3]
    assert (pixels(examples) == images[..., None]).all()


def test_idx_names_what_is_missing_broken_or_not_mnist(tmp_path):
    with pytest.raises(UserError, match="no file t10k-images-idx3-ubyte"):
        idx(tmp_path, "test")
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"not digits"))
    with pytest.raises(UserError, match="is not MNIST's t10k-images-idx3-ubyte"):
        coloured_digits("test", folder=tmp_path)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"not gzip")
    with pytest.raises(UserError, match="cannot be unpacked"):
        idx(tmp_path, "test")


def test_other_idx_files_ask_for_the_names_of_their_classes(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (4, 5, 6), dtype=np.uint8)
    for split, count in (("train", 4), ("t10k", 2)):
        header = np.array([0x0803, count, 5, 6], ">u4").tobytes()
        (tmp_path / f"{split}-images-idx3-ubyte").write_bytes(header + images[:count].tobytes())
        labels = np.array([0x0801, count], ">u4").tobytes() + bytes([0, 1, 1, 2][:count])
        (tmp_path / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(UserError, match=r"not MNIST's .*--classes FILE"):
        load(tmp_path)
    train = load(tmp_path, classes=["shirt", "boot", "bag"])
    assert train.classes == ("shirt", "boot", "bag")
    assert train.labels.tolist() == [0, 1, 1, 2]
    assert train.splits == ("train", "test")
    assert (np.asarray(train.images[3])[..., 0] == images[3]).all()
    assert len(load(tmp_path, split="test", classes=["shirt", "boot", "bag"])) == 2
    with pytest.raises(UserError, match="label 2 lies outside"):
        load(tmp_path, classes=["shirt", "boot"])
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header + images.tobytes())
    with pytest.raises(UserError, match="not an idx file of bytes, or is cut off"):
        load(tmp_path, classes=["shirt", "boot", "bag"])
