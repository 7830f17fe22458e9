"""A file or a folder is there whole, or as it was: whatever goes wrong in between."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tracer.core.errors import UserError
from tracer.runs.record import Recorder, read
from tracer.storage import atomic
from tracer.storage.safetensors_io import write_weights


class PowerCut(BaseException):
    """Not an Exception: nobody may catch it on the way."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_there(tmp_path: Path) -> None:
    atomic.write_bytes(tmp_path / "deep" / "down" / "a.bin", b"\0\1")
    atomic.write_text(tmp_path / "a.txt", "Grüße")
    atomic.write_json(tmp_path / "a.json", {"β": [1, 2.5, None]})
    assert (tmp_path / "deep" / "down" / "a.bin").read_bytes() == b"\0\1"
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "Grüße"
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"β": [1, 2.5, None]}
    assert names(tmp_path) == ["a.json", "a.txt", "deep"]
    atomic.write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize("broken", ["fsync", "replace"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failed_file_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, existing: bool
) -> None:
    file = tmp_path / "a.txt"
    if existing:
        file.write_text("old")

    def fail(*args: object) -> None:
        raise PowerCut

    monkeypatch.setattr(*((os, "fsync") if broken == "fsync" else (Path, "replace")), fail)
    with pytest.raises(PowerCut):
        atomic.write_text(file, "new")
    assert names(tmp_path) == (["a.txt"] if existing else [])
    assert not existing or file.read_text() == "old"


@pytest.mark.parametrize("write", [atomic.write_file, atomic.write_folder])
def test_folders_that_were_made_for_it_go_if_it_fails(tmp_path: Path, write) -> None:
    def fail(temporary: Path) -> None:
        raise PowerCut

    (tmp_path / "run").mkdir()
    with pytest.raises(PowerCut):
        write(tmp_path / "run" / "export" / "deep" / "a", fail)
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == []


def test_nothing_is_renamed_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, then rename, then the folder that holds the name."""
    events: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def watched_replace(self: Path, target: Path) -> Path:
        events.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    atomic.write_text(tmp_path / "a.txt", "new")
    assert events == ["file", "rename", "folder"]
    events.clear()
    atomic.write_folder(tmp_path / "set", fill)
    assert sorted(events[:4]) == ["file", "file", "folder", "folder"]
    assert events[4:] == ["rename", "folder"]


def old(beside: Path) -> None:
    (beside / "old").write_text("old")


def fill(beside: Path) -> None:
    (beside / "one").write_text("1")
    (beside / "below").mkdir()
    (beside / "below" / "two").write_text("2")


def test_a_folder_comes_whole(tmp_path: Path) -> None:
    atomic.write_folder(tmp_path / "set", fill)
    assert (tmp_path / "set" / "below" / "two").read_text() == "2"
    assert names(tmp_path) == ["set"]


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "set"
    atomic.write_folder(place, old)
    atomic.write_folder(place, fill)
    assert names(place) == ["below", "one"]
    assert names(tmp_path) == ["set"]


@pytest.mark.parametrize("existing", [True, False])
def test_a_failed_folder_leaves_the_old_one(tmp_path: Path, existing: bool) -> None:
    place = tmp_path / "set"
    if existing:
        atomic.write_folder(place, old)

    def half(beside: Path) -> None:
        (beside / "half").write_text("half")
        raise PowerCut

    with pytest.raises(PowerCut):
        atomic.write_folder(place, half)
    assert names(tmp_path) == (["set"] if existing else [])
    assert not existing or names(place) == ["old"]


def test_a_full_disk_is_reported_with_the_file(tmp_path: Path, monkeypatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space") as failure:
        atomic.write_text(tmp_path / "file", "text")
    assert failure.value.filename == str(tmp_path / "file")


def test_names_that_are_not_utf8_come_back_from_json(tmp_path: Path) -> None:
    """As in the description of a run on such a folder, its log, and the records of a packed data set."""
    name = os.fsdecode(b"caf\xe9/\xff")
    atomic.write_json(tmp_path / "a.json", {"data": name, "é": "é"})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"data": name, "é": "é"}
    atomic.write_text(tmp_path / "a.html", f"<p>{name}</p>")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == r"<p>caf\udce9/\udcff</p>"
    recorder = Recorder(tmp_path / "log.jsonl")
    recorder.log(1, "warning", message=name)
    recorder.rewind(1)
    assert [line["message"] for line in read(recorder.path)] == [name]


@pytest.mark.parametrize("write", [atomic.write_file, atomic.write_folder])
def test_a_full_disk_in_a_library_of_another_language_is_an_error_of_the_system(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    """The tokenizers of Hugging Face raise a bare Exception, whose text alone says what happened."""

    def full(temporary: Path) -> None:
        raise Exception("No space left on device (os error 28)")

    with pytest.raises(OSError, match="No space") as failure:
        write(tmp_path / "new", full)
    assert (failure.value.errno, failure.value.filename) == (28, str(tmp_path / "new"))
    assert names(tmp_path) == []


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in ("folder", "nowhere"):
        (tmp_path / "link").symlink_to(target)
        atomic.write_folder(tmp_path / "link", fill, replace=False)
        assert (tmp_path / "link").is_symlink()
        assert names(tmp_path / target)
        (tmp_path / "link").unlink()
    assert names(tmp_path) == ["folder", "nowhere"]


def test_of_two_processes_that_write_one_folder_the_second_is_told(tmp_path: Path) -> None:
    """Both have seen that it is empty."""
    (tmp_path / "set").mkdir()

    def meanwhile(temporary: Path) -> None:
        atomic.write_folder(tmp_path / "set", old, replace=False)
        temporary.mkdir(exist_ok=True)  # here both have one process number
        (temporary / "new").write_text("new")

    with pytest.raises(UserError, match="set is not empty: choose another folder"):
        atomic.write_folder(tmp_path / "set", meanwhile, replace=False)
    assert names(tmp_path) == ["set"]
    assert names(tmp_path / "set") == ["old"]
    (tmp_path / "file").write_text("a file")
    with pytest.raises(UserError, match="file is not empty"):
        atomic.write_folder(tmp_path / "file", fill, replace=False)


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path: Path, monkeypatch) -> None:
    place = tmp_path / "folder"
    atomic.write_folder(place, lambda new: (new / "file").write_text("old"))
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target == place and self.suffix == ".tmp":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        atomic.write_folder(place, lambda new: (new / "file").write_text("new"))
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
    assert (place / "file").read_text() == "old"


def test_an_old_folder_is_never_half_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at the exchange, the old files are all still somewhere, and none are left under the name."""
    place = tmp_path / "set"
    atomic.write_folder(place, old)
    replace = Path.replace

    def cut_after_first(self: Path, target: Path) -> Path:
        if self.name.endswith(".tmp"):
            raise PowerCut
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", cut_after_first)
    with pytest.raises(PowerCut):
        atomic.write_folder(place, fill)
    assert [path.read_text() for path in tmp_path.rglob("old")] == ["old"]
    assert not place.exists()
    monkeypatch.undo()
    atomic.write_folder(place, fill)
    assert names(tmp_path) == ["set"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002, 0o027])
def test_every_file_has_the_mode_of_a_new_one(mask: int, tmp_path: Path) -> None:
    """Weights too: safetensors makes its files private, so that a server under another user could not read them."""

    def fill(folder: Path) -> None:
        (folder / "deep").mkdir()
        write_weights(folder / "deep" / "a.safetensors", {"a": torch.zeros(2)})
        (folder / "b.txt").write_text("b")

    before = os.umask(mask)
    try:
        atomic.write_folder(tmp_path / "folder", fill)
        atomic.write_file(tmp_path / "c.safetensors", lambda file: write_weights(file, {"a": torch.zeros(2)}))
        atomic.write_json(tmp_path / "d.json", {})
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o666 & ~mask}


@pytest.mark.parametrize("name", ["x" * 250, "é" * 127])
def test_a_name_as_long_as_a_file_system_takes_is_written(name: str, tmp_path: Path) -> None:
    atomic.write_text(tmp_path / name, "whole")
    assert names(tmp_path) == [name]


def test_an_error_names_the_file_and_not_the_hidden_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long") as error:
        atomic.write_text(tmp_path / ("x" * 256), "")
    assert error.value.filename == str(tmp_path / ("x" * 256))


def test_a_link_that_cannot_be_put_in_place_leaves_nothing(tmp_path: Path) -> None:
    atomic.write_link(tmp_path / "best", Path("one"))
    atomic.write_link(tmp_path / "best", Path("two"))
    assert (tmp_path / "best").readlink() == Path("two")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        atomic.write_link(tmp_path / "taken", Path("one"))
    assert names(tmp_path) == ["best", "taken"]
