"""Checkpoints are written beside training: what is written is the state at that step, and no error is lost."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
import torch

from tracer.parallel import World
from tracer.training import checkpoint as checkpoints
from tracer.training.checkpoint import Checkpoint, CheckpointWriter, latest, save
from tracer.training.interrupt import Interrupted
from tracer.training.pace import Clock, Pace


def state(value: float) -> Checkpoint:
    return Checkpoint({"student": {"w": torch.full((4,), value)}}, {"stage_step": 1})


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Event:
    """An event that a disk waits for before it writes."""
    ready = Event()

    def wait(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
        assert ready.wait(60)
        return save(folder, step, checkpoint)

    monkeypatch.setattr(checkpoints, "save", wait)
    return ready


def saved(folder: Path) -> list[float]:
    newest = latest(folder)
    assert newest is not None
    return newest.checkpoint.tensors["student"]["w"].tolist()


def test_training_goes_on_while_the_disk_is_slow_and_the_state_of_the_step_is_saved(
    tmp_path: Path, slow_disk: Event
) -> None:
    with CheckpointWriter(tmp_path) as writer:
        current = state(1.0)
        writer.begin(1, current)
        current.tensors["student"]["w"].fill_(2.0)  # the next step
        assert latest(tmp_path) is None
        with pytest.raises(RuntimeError, match="not finished"):
            writer.begin(2, current)  # one at a time
        slow_disk.set()
        writer.finish()
        assert saved(tmp_path) == [1.0] * 4


def test_the_last_state_is_not_copied_and_what_follows_is_written_after_it(
    tmp_path: Path, slow_disk: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_copy", None)  # not called
    found: list[list[float]] = []
    with CheckpointWriter(tmp_path) as writer:
        writer.begin(1, state(1.0), final=True)
        writer.then(lambda: found.append(saved(tmp_path)))
        assert not found
        slow_disk.set()
        writer.finish()
        assert found == [[1.0] * 4]


def test_a_run_that_is_stopped_is_not_said_to_be_saved_if_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError("no space left")

    def stopped() -> None:
        with CheckpointWriter(tmp_path) as writer:
            writer.begin(1, state(1.0), final=True)
            raise Interrupted(15, 1, tmp_path)

    monkeypatch.setattr(checkpoints, "save", full)
    with pytest.raises(OSError, match="no space left"):
        stopped()


def test_the_end_of_training_waits_for_the_disk(tmp_path: Path, slow_disk: Event) -> None:
    with CheckpointWriter(tmp_path) as writer:
        writer.begin(1, state(1.0))
        slow_disk.set()
    assert saved(tmp_path) == [1.0] * 4


def test_an_error_in_writing_is_raised_once_in_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(checkpoints, "save", full)
    with CheckpointWriter(tmp_path) as writer:
        writer.begin(1, state(1.0))
        with pytest.raises(OSError, match="no space left"):
            writer.finish()
        monkeypatch.undo()
        assert not writer.failed
        writer.begin(2, state(2.0))
        writer.finish()
    assert saved(tmp_path) == [2.0] * 4


def test_after_an_error_the_next_step_is_to_save_so_that_it_is_raised_soon() -> None:
    pace = Pace(500, World("cpu", "fp32"), Clock(), None, None)
    assert not pace.after(1, False, None).save
    assert pace.after(2, False, None, failed=True).save


def test_without_room_for_a_copy_the_step_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "free_memory", lambda device: 16)
    monkeypatch.setattr(checkpoints, "_copy", None)  # not called
    with CheckpointWriter(tmp_path) as writer:
        writer.begin(1, state(1.0))
        assert saved(tmp_path) == [1.0] * 4
