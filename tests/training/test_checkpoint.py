"""A checkpoint is all of a state: what was damaged is noticed and named, and what is restored goes on to the bit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.core.kernels import Beta
from tracer.core.regularizers import L2SP
from tracer.core.shadow import Shadow
from tracer.core.teachers import WMA
from tracer.core.terms import classify
from tracer.methods.base import Stage
from tracer.methods.presets import composite
from tracer.models.student import Head, load
from tracer.parallel import World
from tracer.storage.checksum import add_checksum
from tracer.training import checkpoint
from tracer.training.checkpoint import Checkpoint, capture, latest, restore, save
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State, step

STEPS = 8


def state(head: bool = False) -> State:
    """A stage about to begin: TRACER's own, or finetuning of the image tower with a spring."""
    student = load("tiny-28", seed=3)
    if head:
        student.head = Head(torch.eye(3, 128), scale=10.0)
        student.requires_grad_(False)
        student.image_tower.requires_grad_(True)
        student.head.requires_grad_(True)
    teacher = None if head else WMA(Beta(0.5), every=2)
    moving = {name: p for name, p in student.named_parameters() if p.requires_grad}
    anchors = {name: p.detach().clone() for name, p in moving.items()}
    hold = L2SP(0.01).attach(moving, anchors) if head else None
    objective = classify() if head else composite("released", 0.9, "class")
    return State(
        stage=Stage(objective, teacher=teacher),
        student=student,
        shadow=Shadow(student, teacher, steps=STEPS) if teacher else None,
        optimiser=adamw(student, 0.1),
        regularizer=hold,
        schedule=Schedule(1e-3, 2, STEPS),
        world=World("cpu"),
    )


def batch(number: int, tokeniser: Callable[..., Tensor]) -> Batch:
    generator = torch.Generator().manual_seed(number)
    image = torch.randint(0, 256, (3, 3, 28, 28), dtype=torch.uint8, generator=generator)
    return Batch(image, tokeniser(["one", "two", "three"]), torch.tensor([0, 1, 2]))


def advance(here: State, until: int) -> State:
    while here.step < until:
        step(here, batch(here.step, here.student.tokeniser))
    return here


def flat(found: Checkpoint) -> dict[str, Tensor]:
    return {f"{owner}:{name}": t for owner, tensors in found.tensors.items() for name, t in tensors.items()}


@pytest.mark.parametrize("head", [False, True])
def test_a_restored_state_goes_on_to_the_bit(tmp_path: Path, head: bool) -> None:
    """Also when stopped between two moves of the teacher, at step 3 of every 2."""
    whole = capture(advance(state(head), 6))
    save(tmp_path, 3, capture(advance(state(head), 3)))
    newest = latest(tmp_path)
    assert newest is not None
    number, stopped, warnings = newest
    assert (number, warnings) == (3, ())
    fresh = state(head)
    restore(fresh, stopped)
    resumed = capture(advance(fresh, 6))
    assert resumed.counters == whole.counters
    ours, theirs = flat(resumed), flat(whole)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    begun = flat(capture(state(head)))
    assert sum(not torch.equal(begun[name], ours[name]) for name in begun) > 20  # it did train


def test_all_that_changes_is_in_it() -> None:
    checkpoint = capture(advance(state(), 3))
    assert set(checkpoint.tensors) == {"student", "optimiser", "teacher"}
    assert checkpoint.counters["stage_step"] == 3
    assert checkpoint.counters["teacher"]["counters"] == {
        "step": 3,
        "steps": STEPS,
    }  # the rest follows from them
    kinds = {name.rpartition("/")[2] for name in checkpoint.tensors["optimiser"]}
    assert kinds == {"step", "exp_avg", "exp_avg_sq"}
    assert {name.rpartition("/")[0] for name in checkpoint.tensors["optimiser"]} == {
        name for name, _ in state().student.named_parameters()
    }


def small(value: float) -> Checkpoint:
    return Checkpoint({"student": {"w": torch.full((4,), value)}, "tether": {}}, {"stage_step": int(value)})


def test_two_are_kept(tmp_path: Path) -> None:
    for number in (1, 2, 10, 100):
        save(tmp_path, number, small(number))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000010", "step-000000100"]
    newest = latest(tmp_path)
    assert newest is not None
    assert newest[0] == 100
    assert newest[1].tensors["student"]["w"].tolist() == [100.0] * 4
    assert newest[1].counters == {"stage_step": 100}


def test_what_a_killed_run_was_writing_is_swept_away(tmp_path: Path) -> None:
    scrap = tmp_path / ".step-000000005.123.tmp"
    scrap.mkdir()
    (scrap / "student.safetensors").write_bytes(b"half")
    assert latest(tmp_path) is None  # it never was a checkpoint
    save(tmp_path, 6, small(6))
    assert not scrap.exists()


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def swap(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a flipped bit": lambda place: flip(place / "student.safetensors"),
    "a cut file": lambda place: (place / "student.safetensors").write_bytes(b"\0" * 9),
    "a lost file": lambda place: (place / "student.safetensors").unlink(),
    "a lost manifest": lambda place: (place / "manifest.json").unlink(),
    "a cut manifest": lambda place: (place / "manifest.json").write_text('{"step": 3, "fil'),
    "an empty manifest": lambda place: (place / "manifest.json").write_text(""),
    "another manifest": lambda place: (place / "manifest.json").write_text("[]"),
    "another step": lambda place: swap(place / "manifest.json", '"step": 2', '"step": 3'),
    "another counter": lambda place: swap(place / "manifest.json", '"stage_step": 2', '"stage_step": 3'),
    "a poorer manifest": lambda place: (place / "manifest.json").write_text(json.dumps({"files": {}})),
}
damages = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())


@damages
def test_a_damaged_newest_is_skipped_and_named(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    save(tmp_path, 1, small(1))
    damage(save(tmp_path, 2, small(2)))
    newest = latest(tmp_path)
    assert newest is not None
    assert newest[0] == 1
    assert newest[1].tensors["student"]["w"].tolist() == [1.0] * 4
    assert len(newest[2]) == 1
    assert "step-000000002 is damaged" in newest[2][0]


def test_a_copy_under_the_name_of_another_step_is_skipped(tmp_path: Path) -> None:
    """Its counters are those of the step that it was written at."""
    shutil.copytree(save(tmp_path, 1, small(1)), tmp_path / "step-000000009")
    newest = latest(tmp_path)
    assert newest is not None
    assert newest[0] == 1
    assert "step-000000009 is damaged (manifest.json does not belong to this folder)" in newest[2][0]


@pytest.mark.parametrize("name", ["/dev/zero", "../../elsewhere.safetensors", "device"])
def test_only_files_of_its_own_are_read(tmp_path: Path, name: str) -> None:
    """A device in the run of a stranger would be read without an end."""
    place = save(tmp_path, 1, small(1))
    (place / "device").symlink_to("/dev/zero")
    manifest = {"step": 1, "counters": {}, "files": {name: "0"}}
    (place / "manifest.json").write_text(json.dumps(add_checksum(manifest)))
    with pytest.raises(UserError, match="is no file in it"):
        latest(tmp_path)


def test_nothing_usable_is_said(tmp_path: Path) -> None:
    assert latest(tmp_path) is None
    assert latest(tmp_path / "never") is None
    for number in (1, 2):
        flip(save(tmp_path, number, small(number)) / "student.safetensors")
    with pytest.raises(UserError, match=r"step-000000002.*step-000000001"):
        latest(tmp_path)


def test_a_save_that_fails_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1, small(1))

    def full(*args: object) -> str:
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint, "file_blake2b", full)
    with pytest.raises(OSError, match="space"):
        save(tmp_path, 2, small(2))
    monkeypatch.undo()
    newest = latest(tmp_path)
    assert newest is not None
    assert (newest[0], newest[2]) == (1, ())
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_checkpoints_of_something_else_are_refused() -> None:
    mine, other = capture(advance(state(), 1)), capture(advance(state(head=True), 1))
    with pytest.raises(UserError, match="the checkpoint's weights do not fit tiny-28"):
        restore(state(), other)
    stranger = Checkpoint(
        {**mine.tensors, "optimiser": {"clip.nowhere/exp_avg": torch.zeros(1)}}, mine.counters
    )
    with pytest.raises(UserError, match=r"it has clip\.nowhere"):
        restore(state(), stranger)
    slower = state()
    assert slower.shadow is not None
    slower.shadow.policy = WMA(Beta(0.5), every=3)
    with pytest.raises(UserError, match="every=2"):
        restore(slower, mine)


def test_nothing_in_it_is_a_pickle(tmp_path: Path) -> None:
    place = save(tmp_path, 1, capture(advance(state(), 1)))
    assert {path.suffix for path in place.iterdir()} == {".safetensors", ".json"}


def test_manifests_from_before_they_had_a_digest_are_read(tmp_path: Path) -> None:
    file = save(tmp_path, 1, small(1)) / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["digest"]
    file.write_text(json.dumps(manifest))
    newest = latest(tmp_path)
    assert newest is not None
    assert (newest[0], newest[2]) == (1, ())
