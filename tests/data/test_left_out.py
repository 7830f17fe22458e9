"""What a source holds is used by one of its splits, or counted with the reason: in = used + left out."""

from __future__ import annotations

import io
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.sources import load

Source = dict[str, bytes]  # the files or members of a source


def picture(number: int, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), (number % 256, 80, 10)).save(stream, kind)
    return stream.getvalue()


def folder(path: Path, source: Source) -> Path:
    for name, content in source.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def shard(path: Path, source: Source) -> Path:
    path.mkdir(exist_ok=True)
    with tarfile.open(path / "data.tar", "w") as file:
        for name, content in source.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path / "data.tar"


def counted(examples: Examples) -> Counter[str]:
    return Counter({each.what: each.count for each in examples.left_out})


# One file, or one sample, each: its names by number, and the reason for which it is left out ("" is used).
FILES: dict[str, tuple[Callable[[int], Source], str]] = {
    "an image": (lambda i: {f"cat/{i}.png": picture(i)}, ""),
    "an image with dots": (lambda i: {f"cat/0.2mm_{i}.png": picture(i)}, ""),
    "an image without a suffix": (lambda i: {f"dog/plain{i}": picture(i, "JPEG")}, ""),
    "an image of an odd suffix": (lambda i: {f"dog/{i}.jpg_large": picture(i, "WEBP")}, ""),
    "an image outside": (lambda i: {f"outside{i}.png": picture(i)}, "images outside the class folders"),
    "a kind that is not read": (lambda i: {f"cat/{i}.psd": b"8BPS"}, "images of kinds that are not read"),
    "notes": (lambda i: {f"cat/notes{i}.txt": b"a note"}, "text files beside no image of their name"),
    "no image": (lambda i: {f"dog/{i}.xml": b"<a/>"}, "files that are no images"),
    "no image without a suffix": (lambda i: {f"README{i}": b"read me"}, "files that are no images"),
    "hidden": (lambda i: {f"cat/.{i}.png": picture(i)}, "hidden files and folders"),
    "a hidden folder": (lambda i: {f".old{i}/x.png": picture(i)}, "hidden files and folders"),
}
MEMBERS: dict[str, tuple[Callable[[int], Source], str]] = {
    "a sample": (lambda i: {f"s{i}.png": picture(i), f"s{i}.cls": b"cat"}, ""),
    "a sample with dots": (lambda i: {f"0.{i}mm.png": picture(i), f"0.{i}mm.cls": b"dog"}, ""),
    "a sample in a folder with dots": (lambda i: {f"v1.2/{i}.JPG": picture(i), f"v1.2/{i}.cls": b"dog"}, ""),
    "no image": (lambda i: {f"lone{i}.cls": b"cat"}, "samples without an image"),
    "two images": (
        lambda i: {f"t{i}.png": picture(i), f"t{i}.mask.png": picture(i), f"t{i}.cls": b"cat"},
        "further images of a sample",
    ),
    "two values": (
        lambda i: {f"u{i}.png": picture(i), f"u{i}.old.cls": b"dog", f"u{i}.cls": b"cat"},
        "further values of a sample",
    ),
    "another kind": (lambda i: {f"m{i}.mp4": b"film"}, "members of kinds that are not read"),
    "hidden": (lambda i: {f"._s{i}.png": picture(i)}, "hidden members"),
}
BOTH_USED = {"two images", "two values"}  # of a sample, one member is left out and the others are used


@pytest.mark.parametrize(
    ("write", "kinds", "least"),
    [(folder, FILES, ("an image", "an image without a suffix")), (shard, MEMBERS, ("a sample",))],
    ids=["folder", "shard"],
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_all_is_used_or_counted(
    write: Callable[[Path, Source], Path],
    kinds: dict[str, tuple[Callable[[int], Source], str]],
    least: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    names = [*least, *data.draw(st.lists(st.sampled_from(sorted(kinds)), max_size=8))]
    source: Source = {}
    expected: Counter[str] = Counter()
    for number, name in enumerate(names):
        content, reason = kinds[name]
        source |= content(number)
        expected[reason] += 1
        expected[""] += name in BOTH_USED
    examples = load(write(tmp_path_factory.mktemp("source"), source))
    used = expected.pop("")
    assert len(examples) == used
    assert counted(examples) == expected
    assert len({images_bytes(examples, i) for i in range(used)}) == len({*range(used)}) or used > 256


def images_bytes(examples: Examples, index: int) -> tuple[str, bytes]:
    """Each image can be opened, under its own id."""
    return examples.ids[index], examples.images[index].tobytes()


def test_the_attacked_shard_is_read_whole(tmp_path: Path) -> None:
    """Half of the samples have a dot in their names; each has its label."""
    stems = {f"{stem}{i:03d}": label for stem, label in (("", b"cat"), ("0.2mm_", b"dog")) for i in range(4)}
    source = {f"{stem}.png": picture(i) for i, stem in enumerate(stems)}
    source |= {f"{stem}.cls": label for stem, label in stems.items()}
    examples = load(shard(tmp_path, source))
    assert np.bincount(examples.labels).tolist() == [4, 4]
    assert examples.left_out == ()


def test_a_mask_beside_an_image_is_no_sample(tmp_path: Path) -> None:
    source = {"1.jpg": picture(1, "JPEG"), "1.seg.png": picture(2), "1.cls": b"cat"}
    examples = load(shard(tmp_path, source))
    assert len(examples) == 1
    assert counted(examples) == {"further images of a sample": 1}
    assert "1.seg.png" in str(examples.left_out[0])


def test_every_split_says_the_same_of_what_none_of_them_uses(tmp_path: Path) -> None:
    source = {f"{split}/{name}/1.png": picture(1) for split in ("train", "test") for name in ("cat", "dog")}
    folder(tmp_path, source | {"stray.png": picture(2), "test/loose.png": picture(3)})
    parts = [load(tmp_path, split=split) for split in ("train", "test")]
    assert sum(map(len, parts)) == 4
    assert [counted(part) for part in parts] == 2 * [
        {"images beside the split folders": 1, "images outside the class folders": 1}
    ]


def test_images_that_a_table_in_their_folder_does_not_name_are_counted(tmp_path: Path) -> None:
    folder(tmp_path, {f"{i}.png": picture(i) for i in range(5)} | {"read.me": b"x"})
    rows = ["file_name,label,split", "0.png,cat,train", "1.png,dog,train", "2.png,cat,test", "3.png,dog,test"]
    (tmp_path / "metadata.csv").write_text("\n".join(rows))
    for split in ("train", "test"):
        examples = load(tmp_path, split=split)
        assert len(examples) == 2
        assert counted(examples) == {"images that are not named": 1, "files that are no images": 1}


def test_files_beside_shards_are_counted(tmp_path: Path) -> None:
    shard(tmp_path, {"1.png": picture(1), "1.cls": b"cat"})
    folder(tmp_path, {"stats.json": b"{}", "more/2.png": picture(2)})
    assert counted(load(tmp_path)) == {"images that are not named": 1, "files that are no images": 1}


def test_a_loop_of_links_is_counted_once(tmp_path: Path) -> None:
    folder(tmp_path, {"cat/1.png": picture(1), "dog/1.png": picture(2)})
    (tmp_path / "cat" / "up").symlink_to(tmp_path)
    examples = load(tmp_path)
    assert len(examples) == 2
    assert counted(examples) == {"links to a folder above them": 1}


@pytest.mark.parametrize("names", [("label", "Label"), ("caption", "Caption"), ("image path", "image_path")])
def test_columns_that_differ_in_spelling_only_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    """One of two would be taken, without a word."""
    others = [each for each in ("file", "label") if each not in names and "image" not in names[0]]
    header = [*names, *(others or ["label"])]
    (tmp_path / "a.csv").write_text(",".join(header) + "\n" + ",".join(["1.png"] * len(header)))
    (tmp_path / "1.png").write_bytes(picture(1))
    with pytest.raises(UserError, match=f"{names[0]}.*{names[1]}.*differ in spelling only"):
        load(tmp_path / "a.csv")


def test_other_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("file,label,weight,camera\n1.png,cat,3,x")
    (tmp_path / "1.png").write_bytes(picture(1))
    assert "other columns: 'weight', 'camera'" in load(tmp_path / "a.csv").detected


def test_an_archive_with_one_array_twice_is_refused(tmp_path: Path) -> None:
    from zipfile import ZipFile

    path = tmp_path / "a.npz"
    images, labels = np.full((4, 8, 8, 3), 90, np.uint8), np.array([0, 1, 0, 1])
    np.savez(path, images=images, labels=labels)
    stream = io.BytesIO()
    np.save(stream, labels[::-1])
    with ZipFile(path, "a") as archive:
        archive.writestr("labels", stream.getvalue())
    with pytest.raises(UserError, match="'labels' twice"):
        load(path)


@pytest.mark.parametrize("kind", ["S", "U"])
def test_names_and_labels_of_an_archive_are_text_whatever_their_type(kind: str, tmp_path: Path) -> None:
    images = np.full((4, 8, 8, 3), 90, np.uint8)
    names = np.array(["cat", "Hündin"])
    stored = np.char.encode(names, "utf-8") if kind == "S" else names
    np.savez(tmp_path / "numbers.npz", images=images, labels=[0, 1, 1, 0], classes=stored)
    np.savez(tmp_path / "words.npz", images=images, labels=stored[[0, 1, 1, 0]])
    np.savez(tmp_path / "captions.npz", images=images, captions=stored[[0, 1, 1, 0]])
    assert load(tmp_path / "numbers.npz").classes == ("cat", "Hündin")
    assert set(load(tmp_path / "words.npz").classes) == {"cat", "Hündin"}
    assert load(tmp_path / "captions.npz").captions[1] == ("Hündin",)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    images = np.full((2, 8, 8, 3), 90, np.uint8)
    np.savez(tmp_path / "a.npz", images=images, labels=[0, 1], classes=np.array([b"\xff", b"a"]))
    with pytest.raises(UserError, match="no UTF-8 text"):
        load(tmp_path / "a.npz")
