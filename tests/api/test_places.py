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
from tracer.models.student import Student, load
from tracer.runs.run import Run

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
        (folder,) = {*map(Path, pool.map(needed, range(2)))}
    assert folder.parent == tmp_path / "models"
    assert written == [folder]


def test_models_that_differ_in_more_than_weights_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QuickGELU has no weights, and how images are seen has none either."""
    students = [load("tiny-28", seed=3) for _ in range(3)]
    students[1].config = {**students[1].config, "quick_gelu": True}
    students[2].preprocess_cfg = {**students[2].preprocess_cfg, "mean": (0.1, 0.2, 0.3)}
    monkeypatch.setattr(inputs, "export", lambda student, folder: folder.mkdir(parents=True))
    names = set()
    for student in students:
        monkeypatch.setattr(inputs, "from_module", lambda *_, student=student: student)
        names.add(model_name(student.clip, tmp_path))
    assert len(names) == 3
