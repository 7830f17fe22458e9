"""Places that cannot be written, and places that two processes write at the same time."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import tracer
from tracer.api import inputs
from tracer.api.inputs import model_name
from tracer.core.errors import UserError
from tracer.evaluation.model import Model
from tracer.models.student import Student
from tracer.runs.run import Run
from tracer.storage.safetensors_io import tensors_blake2b

LATIN = os.fsdecode(b"caf\xe9")  # the name of a folder that is not UTF-8


@pytest.mark.parametrize("place", [".", "../here", "link"])
def test_the_working_directory_is_not_exported_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_student: Student, place: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    if place == "link":
        place = str(tmp_path / "link")
        Path(place).symlink_to("here")
    with pytest.raises(UserError, match="is the working directory: name a new folder"):
        tracer.export(Model(shared_student), place)
    assert not list(Path().iterdir())


def test_a_folder_that_safetensors_cannot_read_is_refused_before_training(
    tmp_path: Path, shared_student: Student
) -> None:
    """The weights were written there, and the end of training could not read them again."""
    absent: Any = None
    for act in (
        lambda: tracer.export(Model(shared_student), tmp_path / LATIN),
        lambda: Run.create(absent, tmp_path / LATIN / "run"),
    ):
        with pytest.raises(UserError, match="is not UTF-8, and weights could not be read there"):
            act()
    assert not list(tmp_path.iterdir())


def test_a_model_that_two_processes_need_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_student: Student
) -> None:
    """The second would move the folder away while the first reads it."""
    name = tensors_blake2b(shared_student.clip.state_dict())
    monkeypatch.setattr(inputs, "from_module", lambda *_: shared_student)
    written: list[Path] = []
    together = Barrier(2)

    def export(student: Student, folder: Path) -> None:
        written.append(folder)
        time.sleep(0.2)
        folder.mkdir(parents=True, exist_ok=True)

    def needed(_: int) -> str:
        together.wait(timeout=5)
        return model_name(shared_student.clip, tmp_path)

    monkeypatch.setattr(inputs, "export", export)
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(needed, range(2))) == {str(tmp_path / "models" / name)}
    assert written == [tmp_path / "models" / name]
