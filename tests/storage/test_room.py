"""What is free, what files take, and how that is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.storage.room import DiskFull, free, require_room, size, size_text


def test_what_is_free_is_asked_where_the_folder_will_be(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    assert abs(free(tmp_path / "not" / "yet" / "there") - disk.f_bavail * disk.f_frsize) < 2**30
    assert free(Path("relative")) is not None


def test_a_system_that_does_not_say_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(path: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "statvfs", silent)
    require_room(tmp_path, 2**60, "this", "")


def test_names_of_one_file_count_once(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"0" * 1000)
    (tmp_path / "b").hardlink_to(tmp_path / "deep" / "a")
    (tmp_path / "c").symlink_to(tmp_path / "b")
    assert size(tmp_path) == size(tmp_path / "b") == 1000
    assert size(tmp_path / "missing") == 0


def test_the_sentence_says_what_where_and_what_would_need_less(tmp_path: Path) -> None:
    with pytest.raises(
        DiskFull, match=r"^this needs 8589934592 GiB on the disk, and .* are free at .*: make room$"
    ):
        require_room(tmp_path, 2**63, "this", "make room")


@pytest.mark.parametrize(
    ("count", "text"), [(10, "1 KiB"), (3000, "3 KiB"), (1.5 * 2**20, "1.5 MiB"), (12.4 * 2**30, "12 GiB")]
)
def test_sizes_are_readable(count: float, text: str) -> None:
    assert size_text(count) == text
