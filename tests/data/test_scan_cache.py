"""A file that has not changed is decoded once, and a file that has is decoded again."""

from __future__ import annotations

import os
import time

import pytest

from tracer.core.errors import UserError
from tracer.data import scan as module
from tracer.data.scan import ScanCache, scan
from tracer.data.sources import load
from tracer.data.split import divide
from tracer.storage.cache import cache_folder


@pytest.fixture
def photos(tmp_path, picture, monkeypatch):
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path / "cache"))
    for i in range(120):
        picture(f"photos/{'ab'[i % 2]}/{i:03d}.png")
    time.sleep(0.06)  # files that are newer may still change unseen, and are not kept
    return tmp_path / "photos"


@pytest.fixture
def decodes(monkeypatch) -> list[bytes]:
    """All that was decoded."""
    calls: list[bytes] = []
    measure = module.measure
    monkeypatch.setattr(module, "measure", lambda encoded: (calls.append(encoded), measure(encoded))[1])
    return calls


def test_every_file_is_decoded_once(photos, decodes):
    first = scan(load(photos))
    assert len(decodes) == 120
    reports = []
    again = scan(load(photos), progress=lambda done, total: reports.append((done, total)))
    divide(str(photos))
    assert len(decodes) == 120
    assert (again.contents == first.contents).all()
    assert reports == [(120, 120)]


@pytest.mark.parametrize("keep_time", [False, True])
def test_a_file_that_changed_is_decoded_again(photos, decodes, keep_time):
    first = scan(load(photos))
    changed, other = photos / "a" / "000.png", photos / "b" / "001.png"
    status = changed.stat()
    changed.write_bytes(other.read_bytes())
    if keep_time:
        os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = scan(load(photos))
    assert len(decodes) == 121
    assert (again.contents != first.contents).any(axis=1).nonzero()[0].tolist() == [0]
    assert (again.contents[0] == again.contents[60]).all()


def test_two_files_that_were_exchanged_are_noticed(photos, decodes):
    first = scan(load(photos))
    one, two, aside = photos / "a" / "000.png", photos / "b" / "001.png", photos.parent / "aside"
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
    again = scan(load(photos))
    assert (again.contents[0] == first.contents[60]).all()
    assert (again.contents[60] == first.contents[0]).all()


def test_problems_are_kept_too(photos, decodes):
    (photos / "a" / "000.png").write_bytes(b"no image")
    time.sleep(0.06)
    first = scan(load(photos))
    assert first.skipped == scan(load(photos)).skipped == ("a/000.png: it is no image of a known kind",)
    assert len(decodes) == 120
    with pytest.raises(UserError, match="1 of 120"):
        scan(load(photos), strict=True)
    (photos / "a" / "000.png").unlink()
    assert scan(load(photos)).skipped == ()


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", b"\x93NUMPY"])
def test_a_damaged_cache_is_only_slow(photos, decodes, damage):
    scan(load(photos))
    (file,) = cache_folder().rglob("*.npz")
    file.write_bytes(damage)
    assert len(scan(load(photos))) == 120
    assert len(decodes) == 240
    scan(load(photos))
    assert len(decodes) == 240


def test_without_a_place_for_it_all_files_are_decoded(photos, decodes, monkeypatch):
    (photos.parent / "occupied").write_bytes(b"")
    monkeypatch.setenv("TRACER_CACHE", str(photos.parent / "occupied"))
    for _ in range(2):
        assert len(scan(load(photos))) == 120
    assert len(decodes) == 240


def test_data_with_one_root_share_a_cache_and_do_not_disturb_each_other(photos, decodes):
    (photos / "a").rename(photos / "a_")
    (photos / "train").mkdir()
    (photos / "val").mkdir()
    for split, source in (("train", "a_"), ("val", "b")):
        (photos / source).rename(photos / split / source)
        (photos / split / source).joinpath("extra").mkdir()
        for i, file in enumerate(sorted((photos / split / source).glob("*.png"))):
            if i % 2:
                (photos / split / "other").mkdir(exist_ok=True)
                file.rename(photos / split / "other" / file.name)
    time.sleep(0.06)
    divide(str(photos))
    assert len(decodes) == 120
    divide(str(photos))
    assert len(decodes) == 120


def test_shards_are_remembered_as_well(photos, decodes, tmp_path):
    from tracer.data.pack import pack

    pack(load(photos), tmp_path / "photos.tar", lossless=True)
    time.sleep(0.06)
    scan(load(tmp_path / "photos.tar"))
    assert len(decodes) == 120
    scan(load(tmp_path / "photos.tar"))
    assert len(decodes) == 120


def test_entries_survive_in_the_file(photos):
    findings = scan(load(photos)).contents
    stored = ScanCache(load(photos).images)
    assert {finding.content for finding in stored.findings.values()} == {row.tobytes() for row in findings}
