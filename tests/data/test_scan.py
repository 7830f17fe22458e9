from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from tracer.core.errors import UserError
from tracer.data.embedded.digits import digits
from tracer.data.examples import Examples, Pixels
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.storage.images import BROKEN, measure


@pytest.fixture
def photos(tmp_path):
    """Two hundred small photographs in two classes."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(100):
            Image.fromarray(pixels).save(tmp_path / name / f"{i:03d}.jpg", quality=95)
    return tmp_path


def bomb() -> bytes:
    """A PNG of a few bytes that says it holds 900 million pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_good_data_come_back_as_they_are(photos):
    examples = load(photos)
    reports = []
    again = scan(examples, strict=True, progress=lambda done, total: reports.append((done, total)))
    assert again.images is examples.images
    assert again.fingerprint == examples.fingerprint
    assert again.contents.shape == (200, 16)
    assert scan(again) is again
    assert reports == [(200, 200)]


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda content: b"", "empty"),
        (lambda content: content[: len(content) // 2], "[Tt]runcated"),
        (lambda content: content[:-40], "truncated"),
        (lambda content: content[:100], "[Tt]runcated"),
        (lambda content: b"<html>not found</html>", "no image of a known kind"),
        (lambda content: bomb(), "pixels, and at most 178,956,970 are read"),
    ],
)
def test_a_broken_image_is_named_and_left_out(photos, harm, why):
    path = photos / "b" / "007.jpg"
    path.write_bytes(harm(path.read_bytes()))
    examples = load(photos)
    readable = scan(examples)
    assert len(readable) == 199
    assert "b/007.jpg" not in readable.ids
    assert readable.labels.tolist() == [0] * 100 + [1] * 99
    assert [each.startswith("b/007.jpg: ") for each in readable.skipped] == [True]
    with pytest.raises(UserError, match=rf"1 of 200 images \(0\.5%\).*\n  b/007\.jpg: .*({why})"):
        scan(examples, strict=True)
    with pytest.raises(UserError, match=rf"007\.jpg cannot be read: .*({why}|cannot identify|no image)"):
        examples.images[107]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP", "PPM", "AVIF"])
def test_no_damage_escapes(kind):
    if kind == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow does not read AVIF")
    rng = np.random.default_rng(0)
    file = BytesIO()
    Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(file, kind)
    refused = 0
    for _ in range(150):
        content = np.frombuffer(file.getvalue(), np.uint8).copy()
        content[rng.integers(0, len(content), 4)] = rng.integers(0, 256, 4)
        try:
            measure(content[: len(content) - rng.integers(0, 2) * rng.integers(0, len(content))].tobytes())
        except BROKEN:  # anything else fails the test
            refused += 1
    assert refused > 0


def test_a_missing_image_is_as_good_as_broken(photos):
    examples = load(photos)
    (photos / "a" / "003.jpg").unlink()
    assert scan(examples).skipped == ("a/003.jpg: there is no such file",)


def test_more_than_one_per_cent_is_refused_always(photos):
    for i in (1, 2):
        (photos / "a" / f"{i:03d}.jpg").write_bytes(b"")
    assert len(scan(load(photos)).skipped) == 2  # exactly 1 %
    (photos / "b" / "000.jpg").write_bytes(b"")
    with pytest.raises(UserError, match=r"3 of 200 images \(1\.5%, more than 1%\) .* cannot be read"):
        scan(load(photos))
    assert len(scan(load(photos), skip_unreadable=True)) == 197
    with pytest.raises(UserError, match=r"--strict .* --skip-unreadable .*: give one"):
        scan(load(photos), strict=True, skip_unreadable=True)


def test_all_unreadable_images_are_listed_in_a_file(photos, monkeypatch):
    monkeypatch.setenv("TRACER_CACHE", str(photos / "cache"))
    for i in range(9):
        (photos / "a" / f"{i:03d}.jpg").write_bytes(b"")
    with pytest.raises(
        UserError, match=r"all are listed in (?s:.*)--skip-unreadable leaves them out"
    ) as error:
        scan(load(photos))
    path = str(error.value).partition("listed in ")[2].split("\n")[0]
    assert Path(path).read_text().splitlines() == [f"a/{i:03d}.jpg: the file is empty" for i in range(9)]


def test_what_is_left_must_still_be_data(photos):
    for path in (photos / "b").iterdir():
        path.write_bytes(b"")
    assert len(scan(load(photos), skip_unreadable=True)) == 100  # the class stays, without an image
    for path in (photos / "a").iterdir():
        path.write_bytes(b"")
    with pytest.raises(UserError, match="there are no images in"):
        scan(load(photos), skip_unreadable=True)


@pytest.mark.parametrize("size", [(1, 1), (7, 300), (300, 3)])
def test_tiny_jpegs_are_images(tmp_path, size):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", size, "red").save(tmp_path / name / "1.jpg")
    assert len(scan(load(tmp_path), strict=True)) == 2


def test_a_subset_can_be_scanned(photos):
    (photos / "a" / "001.jpg").write_bytes(b"")
    part = load(photos).take(np.arange(200)).take(np.arange(120))
    assert scan(part).skipped == ("a/001.jpg: the file is empty",)


def make_examples(labels, captions=None, classes=("x", "y")) -> Examples:
    n = len(labels)
    return Examples(
        name="made",
        images=Pixels(np.zeros((n, 2, 2, 3), np.uint8)),
        ids=[str(i) for i in range(n)],
        labels=np.array(labels, np.int64),
        captions=captions if captions is not None else [()] * n,
        classes=classes,
    )


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (make_examples([]), "there are no images in made"),
        (make_examples([-1, -1], classes=()), "neither classes nor captions"),
        (make_examples([0, 0], classes=("x",)), "one class only, 'x'"),
        (make_examples([0, -1, 1]), "1 of 3 images in made have no label, for example 1"),
        (make_examples([0, 2, 5]), "2 of 3 images in made have a label outside the 2 classes, for example 1"),
        (make_examples([0, -2]), "label outside the 2 classes"),
        (
            make_examples([-1, -1], [("a",), ()], ()),
            "1 of 2 images in made have an empty caption, for example 1",
        ),
        (make_examples([0, 1], classes=("x", " ")), "class 1 of made has an empty name"),
    ],
)
def test_data_that_nothing_can_be_learnt_from_are_refused(examples, message):
    with pytest.raises(UserError, match=message):
        scan(examples)


def test_one_class_with_captions_is_enough():
    examples = make_examples([0, 0], [("a",), ("b",)], ("x",))
    assert len(scan(examples)) == 2


def test_pixels_in_memory_need_no_look():
    examples = digits("test")
    again = scan(examples)
    assert again.images is examples.images
    assert len({row.tobytes() for row in again.contents}) == len(examples)
