from __future__ import annotations

import gzip
import io
import json
import tarfile

import fsspec
import numpy as np
import pytest
from PIL import Image
from posting import posted

from tracer.core.errors import UserError
from tracer.data.formats.shards import expand_braces
from tracer.data.sources import load


def png(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


def tar(path, members: dict[str, bytes | str], links: dict[str, str] | None = None):
    with tarfile.open(path, "w") as shard:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            content = content.encode() if isinstance(content, str) else content
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            shard.addfile(member)
    return path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.tar", ["a.tar"]),
        ("a-{08..11}.tar", ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"]),
        ("{8..10}", ["8", "9", "10"]),
        ("{x,y}-{0..1}", ["x-0", "x-1", "y-0", "y-1"]),
    ],
)
def test_braces(pattern, names):
    assert expand_braces(pattern) == names


@pytest.mark.parametrize("pattern", ["{a..b}", "{3..1}", "{0..999999999}", "{1..}"])
def test_impossible_ranges_are_refused(pattern):
    with pytest.raises(UserError, match="range"):
        expand_braces(pattern)


def test_members_of_a_sample_may_come_in_any_order_and_kind(tmp_path):
    tar(
        tmp_path / "s.tar",
        {
            "./a/1.cls": "1",
            "a/2.json": json.dumps({"label": 0, "caption": ["x", "y"], "width": 4}),
            "a/1.png": png(1),
            "a/2.jpeg": png(2),  # the content decides how it is decoded
            "a/1.json": json.dumps({"caption": "z"}),
            "README.md": "nothing",
        },
    )
    examples = load(tmp_path / "s.tar", label="none")
    assert examples.captions == [("z",), ("x", "y")]
    assert [np.asarray(examples.images[i])[0, 0, 0] for i in range(2)] == [1, 2]
    assert examples.ids == ["s.tar/a/1", "s.tar/a/2"]
    assert [str(each) for each in examples.left_out] == ["members of kinds that are not read: 1, README.md"]


def test_labels_are_numbers_or_names(tmp_path):
    tar(tmp_path / "s.tar", {"1.png": png(1), "1.cls": "1\n", "2.png": png(2), "2.cls": "0"})
    assert load(tmp_path / "s.tar", classes=["cat", "dog"]).labels.tolist() == [1, 0]
    with pytest.raises(UserError, match="label 1 lies outside the 1 class names"):
        load(tmp_path / "s.tar", classes=["cat"])


def test_samples_without_an_image_are_counted_and_the_image_can_be_chosen(tmp_path):
    tar(
        tmp_path / "s.tar",
        {"1.input.png": png(1), "1.png": png(2), "1.gif": png(3), "1.txt": "one", "2.txt": "alone"},
    )
    examples = load(tmp_path / "s.tar")
    assert {each.what: each.count for each in examples.left_out} == {
        "samples without an image": 1,
        "further images of a sample": 2,
    }
    assert np.asarray(examples.images[0])[0, 0, 0] == 2
    assert np.asarray(load(tmp_path / "s.tar", image="gif").images[0])[0, 0, 0] == 3
    with pytest.raises(UserError, match="'jpg'"):
        load(tmp_path / "s.tar", image="jpg")


def test_links_are_passed_over_and_ways_out_refused(tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(9))
    tar(tmp_path / "s.tar", {"1.png": png(1), "1.txt": "one"}, links={"2.png": str(secret), "2.txt": "1.txt"})
    assert load(tmp_path / "s.tar").ids == ["s.tar/1"]
    for name in ("../2.png", "/etc/2.png", "a/../../2.png"):
        tar(tmp_path / "s.tar", {name: png(1), "1.txt": "one"})
        with pytest.raises(UserError, match="points outside of it: refused"):
            load(tmp_path / "s.tar")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s.tar", "secret.png"]  # nothing was unpacked


@pytest.mark.parametrize(
    "headers", [{"map": "0,1"}, {"major": "1", "minor": "0", "name": "1.png", "realsize": "9"}]
)
def test_sparse_members_are_refused_in_a_sentence(tmp_path, headers):
    path = tmp_path / "s.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as shard:
        member = tarfile.TarInfo("1.png")
        member.size, member.pax_headers = (
            len(png(1)),
            {f"GNU.sparse.{name}": value for name, value in headers.items()},
        )
        shard.addfile(member, io.BytesIO(png(1)))
    with pytest.raises(UserError, match=r"s\.tar"):
        load(path, label="none")


def test_ids_tell_equal_names_apart_but_not_where_the_data_lie(tmp_path):
    members = {"1.png": png(1), "1.txt": "one"}
    for place in ("x", "elsewhere/x"):
        for part in ("a", "b"):
            (tmp_path / place / part).mkdir(parents=True)
            tar(tmp_path / place / part / "0.tar", members)
    here, there = (load(f"{tmp_path}/{place}/{{a,b}}/0.tar") for place in ("x", "elsewhere/x"))
    assert here.ids == ["a/0.tar/1", "b/0.tar/1"]
    assert here.fingerprint == there.fingerprint


def test_images_can_be_sent_to_workers(tmp_path):
    tar(tmp_path / "s.tar", {"1.png": png(7), "1.txt": "one"})
    images = posted(load(tmp_path / "s.tar").images)
    assert np.asarray(images[0])[0, 0, 0] == 7


def test_broken_shards_are_named(tmp_path):
    path = tar(tmp_path / "s.tar", {"1.txt": "one", "1.png": png(1) + bytes(4000)})
    whole = path.read_bytes()
    for content, message in {
        b"not a tar file" * 100: "s.tar cannot be read as a plain tar file",
        gzip.compress(whole): "s.tar cannot be read as a plain tar file",
        b"": "s.tar cannot be read as a plain tar file",
        whole[: 512 * 5]: "s.tar is cut off in the middle of 1.png",
        whole[: 512 * 2 + 100]: "s.tar is cut off or damaged after 1 members",
        whole[: 512 * 2]: "s.tar is cut off or damaged after 1 members",
        whole[: 512 * 2] + b"?" * 512 + whole[512 * 3 :]: "s.tar is cut off or damaged after 1 members",
        whole + whole: "s.tar is cut off or damaged after 2 members",
        bytes(10240): "no images in .*s.tar",
    }.items():
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            load(path)


def test_no_damage_escapes(tmp_path):
    path = tar(tmp_path / "s.tar", {"1.txt": "one", "1.png": png(1), "1.json": '{"label": 1}'})
    whole, rng = np.frombuffer(path.read_bytes(), np.uint8), np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        content = whole[: len(whole) - rng.integers(0, 2) * rng.integers(0, len(whole))].copy()
        places = rng.integers(0, max(1, min(len(content), 3072)), 3)
        content[places[places < len(content)]] = rng.integers(0, 256)
        path.write_bytes(content.tobytes())
        try:
            load(path)
        except UserError:  # anything else fails the test
            refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"1.png": png(1)}, "no column that looks like a caption or a label"),
        ({"1.txt": "alone"}, "no images in"),
        ({"1.png": png(1), "1.json": "{"}, "1.json in .*s.tar: not JSON"),
        ({"1.png": png(1), "1.txt": "x" * 2_000_000}, "1.txt in .*s.tar is too long"),
        ({"1.png": png(1), "./1.png": png(2), "1.txt": "x"}, "holds ./1.png twice"),
        ({"1.png": png(1), "1.json": '{"caption": {"en": "x"}}'}, "expected a text or a number"),
    ],
)
def test_what_is_wrong_inside_is_said(tmp_path, members, message):
    with pytest.raises(UserError, match=message):
        load(tar(tmp_path / "s.tar", members))


def test_missing_shards_and_unknown_places_are_named(tmp_path):
    tar(tmp_path / "s-0.tar", {"1.png": png(1), "1.txt": "one"})
    with pytest.raises(UserError, match=r"there is no shard .*s-1\.tar"):
        load(f"{tmp_path}/s-{{0..1}}.tar")
    with pytest.raises(UserError, match=r"there is no shard memory://nowhere/s.tar"):
        load("memory://nowhere/s.tar")
    with pytest.raises(UserError, match=r"gopher://x/s.tar cannot be reached"):
        load("gopher://x/s.tar")


def test_wildcards_work_anywhere(tmp_path):
    path = tar(tmp_path / "s-0.tar", {"1.png": png(5), "1.txt": "one"})
    fsspec.filesystem("memory").pipe("/wild/s-0.tar", path.read_bytes())
    for pattern in (f"{tmp_path}/s-*.tar", "memory://wild/s-*.tar", "memory://wild"):
        examples = load(pattern)
        assert examples.ids == ["s-0.tar/1"]
        assert np.asarray(examples.images[0])[0, 0, 0] == 5


def sample(shade: int) -> dict[str, bytes | str]:
    return {f"{shade}.png": png(shade), f"{shade}.cls": ("cat", "dog")[shade % 2]}


@pytest.mark.parametrize("names", [("train-0", "val-0", "test-0"), ("x_Training", "x_dev", "x_test1")])
def test_shards_named_after_splits_are_splits(tmp_path, names):
    for number, name in enumerate(names):
        tar(tmp_path / f"{name}.tar", sample(2 * number) | sample(2 * number + 1))
    for number, split in enumerate(("train", "val", "test")):
        examples = load(tmp_path, split=split)
        assert examples.splits == ("train", "val", "test")
        assert [np.asarray(image)[0, 0, 0] for image in examples.images] == [2 * number, 2 * number + 1]
    assert not load(f"{tmp_path}/{names[0]}.tar").splits, "one split alone is all of the data"


def test_shards_of_several_splits_beside_others_are_refused(tmp_path):
    for number, name in enumerate(("extra", "train-0", "test-0")):
        tar(tmp_path / f"{name}.tar", sample(number))
    with pytest.raises(UserError, match=r"several splits \(train, test\) beside extra.tar"):
        load(tmp_path)
    assert len(load(f"{tmp_path}/{{train-0,extra}}.tar")) == 2


def test_shards_and_members_that_disagree_about_splits_are_refused(tmp_path):
    for number, name in enumerate(("train", "test")):
        tar(tmp_path / f"{name}.tar", {"1.png": png(number), "1.json": '{"label": "cat", "split": "train"}'})
    with pytest.raises(UserError, match="name different splits"):
        load(tmp_path)
