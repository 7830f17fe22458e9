"""A full disk costs nothing: it is told before work starts; if it fills all the same, the newest checkpoint stays."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from training import stopping

from tracer.api.run import Machine
from tracer.cli.app import main
from tracer.core.command_line import command_line
from tracer.data.sources import load
from tracer.evaluation import measured
from tracer.fitting.budget import Schedule
from tracer.fitting.fit import _require_room
from tracer.fitting.parts import Parts
from tracer.fitting.search import Search
from tracer.runs.experiment import Experiment
from tracer.storage import room
from tracer.storage.room import DiskFull, size
from tracer.sweep import worker
from tracer.training import checkpoint
from tracer.training.checkpoint import latest

RECIPE = """
from tracer.runs.experiment import Experiment
from tracer.sweep import Sweep, product

SIZE = dict(data={photos!r}, held_out={photos!r}, model={model!r}, pretrained="none", steps=2, batch=8)


def three() -> Sweep:
    return Sweep(product(Experiment(method="ft", **SIZE), seed=range(3)))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures, a model with random weights, and a finished run of it."""
    folder = tmp_path_factory.mktemp("full")
    stopping.prepare(folder)
    names = measured.known_names()[:24]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "known_names", lambda: names)
        assert main(stopping.training(folder, "run", 0)) == 0
        assert (
            main(["export", str(folder / "run"), "--weights", "pretrained", "--out", str(folder / "model")])
            == 0
        )
    model = str(folder / "minute.json")
    (folder / "recipe.py").write_text(RECIPE.format(photos=str(folder / "photos"), model=model))
    return folder


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    names = measured.known_names()[:24]
    monkeypatch.setattr(measured, "known_names", lambda: names)


def commands(world: Path) -> dict[str, list[str]]:
    run, photos, new = str(world / "run"), str(world / "photos"), str(world / "new")
    return {
        "train": stopping.training(world, "new", 0),
        "merge": ["merge", run, "--wise", "0.5", "--name", "new"],
        "export": ["export", run, "--out", new],
        "export onnx": ["export", run, "--format", "onnx", "--out", new],
        "pack": ["pack", photos, "--out", f"{new}.tar"],
        "sweep": ["sweep", f"{world / 'recipe.py'}:three", "--out", new],
    }


@pytest.mark.parametrize("name", ["train", "merge", "export", "export onnx", "pack", "sweep"])
def test_what_has_no_room_is_refused_before_it_begins(
    name: str, world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = written(world)
    monkeypatch.setattr(room, "free", lambda path: 1000)
    assert main(commands(world)[name]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert " on the disk, and 1 KiB are free at " in said
    assert "make room" in said
    assert written(world) == before


def written(folder: Path) -> list[Path]:
    """What lies below, but for the bytecode of a recipe, which Python writes."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_a_sweep_needs_room_for_all_that_is_left(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = size(world / "run" / "weights" / "result.safetensors")
    monkeypatch.setattr(room, "free", lambda path: 2 * weights)  # enough for one of them
    monkeypatch.setattr(
        "tracer.cli.commands.sweep._run", lambda *_: pytest.fail("workers are started without room")
    )
    assert main(commands(world)["sweep"]) == 2
    assert "a sweep with 3 runs to be done needs " in " ".join(capsys.readouterr().err.split())


def test_a_run_needs_less_room_once_it_has_written(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint is replaced, and what lies there does not count twice."""
    shutil.copytree(world / "run", tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    monkeypatch.setattr(room, "free", lambda path: size(world / "run"))
    assert main(stopping.resuming(tmp_path / "run")) == 0


def full_from(number: int) -> Callable[..., None]:
    """A `write_weights` for a disk that is full from the n-th file on."""
    real, calls = checkpoint.write_weights, iter(range(1, 1000))

    def write(path: Path, *arguments: object, **options: object) -> None:
        if next(calls) >= number:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *arguments, **options)

    return write


@pytest.mark.parametrize("number", [1, 4, 5, 8])
def test_the_newest_good_checkpoint_stays_and_is_named(
    number: int,
    world: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    train = [*stopping.training(world, "x", 0)[:-1], str(tmp_path / "run"), "--save-every", "2"]
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_weights", full_from(number))
        assert main(train) == 2
    said = " ".join(capsys.readouterr().err.split())
    kept = latest(tmp_path / "run" / "resume")
    newest = tmp_path / "run" / "resume" / f"step-{kept.step:09d}" if kept else None
    assert "No space left on device" in said
    assert f"{newest} is the newest checkpoint" in said if newest else "no checkpoint is written yet" in said
    assert f"go on with: {command_line('resume', tmp_path / 'run')}" in said
    assert not list(tmp_path.rglob("*.tmp"))
    assert main(stopping.resuming(tmp_path / "run")) == 0
    assert stopping.hashes(tmp_path / "run") == stopping.hashes(world / "run")


def test_two_checkpoints_are_room_enough(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a third has none, all but the newest that is whole go before it is written, damaged ones too."""
    real, most = checkpoint.write_weights, []

    def write(path: Path, *arguments: object, **options: object) -> None:
        if len(list(path.parent.parent.glob("step-*"))) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        most.append(path)
        real(path, *arguments, **options)

    monkeypatch.setattr(checkpoint, "write_weights", write)
    train = [*stopping.training(world, "x", 0)[:-1], str(tmp_path / "run"), "--save-every", "2"]
    assert main(train) == 0
    assert stopping.hashes(tmp_path / "run") == stopping.hashes(world / "run")
    assert len(most) > 8


def test_a_full_disk_ends_a_sweep_and_fails_no_run(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no room")

    monkeypatch.setattr(worker, "finished", full)
    with pytest.raises(DiskFull):
        worker.attempt(None, tmp_path, None, None)  # pyrefly: ignore[bad-argument-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("trials", "enough"), [(3, True), (300, False)])
def test_fit_needs_room_for_every_trial(
    trials: int, enough: bool, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos, weights = str(world / "photos"), size(world / "run" / "weights")
    base = Experiment(method="zeroshot", data=photos, held_out=photos, model=str(world / "model"), batch=8)
    search = Search(base, Parts((), load(photos), ()), tmp_path, Machine(), print)
    search.schedule = Schedule((10,), (trials,))
    monkeypatch.setattr(room, "free", lambda path: 20 * weights)
    with (
        nullcontext()
        if enough
        else pytest.raises(DiskFull, match=r"a search of 300 more trials .* a smaller --budget")
    ):
        _require_room(search)
