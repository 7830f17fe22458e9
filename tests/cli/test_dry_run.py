"""`tracer train --dry-run`: whether it fits first, then how much work it is, then what is not as usual."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from tracer.cli import dry_run
from tracer.cli.app import main
from tracer.methods.base import Stage
from tracer.models.student import Student
from tracer.parallel import World
from tracer.parallel import device as devices
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.training import estimate as estimates
from tracer.training.estimate import Estimate

TINY = ["--data", "digits", "--model", "tiny-28", "--pretrained", "none", "--device", "cpu", "--batch", "64"]


def lines(capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    assert main(["train", *TINY, *flags]) == 0
    return capsys.readouterr().out.splitlines()


def settings(output: list[str]) -> list[str]:
    return [line.split("│")[1].strip() for line in output if line.startswith("│")]


def test_it_fits(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dry_run, "free_memory", lambda device: 64 * 2**30)
    shown = lines(capsys, "--dry-run", "--lr", "3e-6")
    assert shown[0].startswith("fits: needs ")
    assert re.search(r"steps of 64 images, about [\d.]+ (s|min|h) on this machine; ", shown[1])
    assert "held out" in shown[1]
    names = settings(shown)
    assert {"method", "data", "model", "lr", "steps", "batch"} <= set(names)
    assert not {"seed", "clip", "decay", "beta", "device"} & set(names), "defaults are shown"
    assert "None" not in "".join(shown)
    assert not list(tmp_path.iterdir())


def test_it_does_not_fit_and_a_chunk_would(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunk that is named is the largest that the estimate itself lets through."""
    large = ("--dry-run", "--batch", "256")
    needs: dict[int | None, Estimate] = {}
    real = dry_run.estimate

    def estimate(plan: Plan) -> Estimate:
        if plan.experiment.chunk not in needs:
            needs[plan.experiment.chunk] = real(plan)
        return needs[plan.experiment.chunk]

    def on_device(chunk: int | None) -> int:
        return needs[chunk].total - needs[chunk].process

    monkeypatch.setattr(dry_run, "CHUNKS", (64, 32))
    monkeypatch.setattr(dry_run, "_duration", lambda settled, device: "")
    monkeypatch.setattr(dry_run, "estimate", estimate)
    monkeypatch.setattr(dry_run, "free_memory", lambda device: 10 * 2**20)
    assert "use a smaller --model" in lines(capsys, *large)[0]
    assert on_device(32) < on_device(64) < on_device(None)
    between = (on_device(32) + on_device(64)) // 2
    monkeypatch.setattr(dry_run, "free_memory", lambda device: between)
    first = lines(capsys, *large)[0]
    assert first.startswith("does not fit in ")
    assert ": use --chunk 32 (" in first
    assert lines(capsys, *large, "--chunk", "32")[0].startswith("fits")


@pytest.mark.parametrize(("cost", "timed"), [(0.01, 60), (0.1, 16)])
def test_the_time_is_that_of_all_steps(monkeypatch: pytest.MonkeyPatch, cost: float, timed: int) -> None:
    """More images are timed until a step takes a second or the batch is whole; `lpft` has two stages."""
    settled = plan(
        Experiment(data="digits", method="lpft", model="tiny-28", pretrained="none", batch=60, steps=40)
    )
    counts = []

    def seconds(plan: Plan, stage: Stage, student: Student, world: World, count: int) -> float:
        counts.append(count)
        return cost * count

    monkeypatch.setattr(estimates, "_seconds", seconds)
    assert estimates.training_seconds(settled, "cpu") == pytest.approx(40 * 60 * cost)
    assert max(counts) == timed


def test_all_settings_if_they_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    names = settings(lines(capsys, "--dry-run-all"))
    assert {"seed", "clip", "beta", "lr", "memory: optimiser"} <= set(names)


def test_where_the_system_does_not_say_it_is_not_promised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "free_memory", lambda device: None)
    assert lines(capsys, "--dry-run")[0].startswith("fits perhaps: at least ")


def test_a_container_limits_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "CGROUPS", tmp_path)
    cpu = torch.device("cpu")
    free = devices.free_memory(cpu)
    if free is None:
        pytest.skip("this system does not say how much memory is free")
    (tmp_path / "memory.current").write_text("1000")
    (tmp_path / "memory.max").write_text("max")
    assert devices.free_memory(cpu) > 3000
    (tmp_path / "memory.max").write_text("4000")
    assert devices.free_memory(cpu) == 3000


def test_a_sweep_shows_what_is_swept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        "from tracer.runs.experiment import Experiment\n"
        "def study():\n"
        "    first = dict(data='digits', model='tiny-28', pretrained='none')\n"
        "    yield Experiment(**first)\n"
        "    yield Experiment(**first, lr=3e-6, seed=2)\n"
        "    yield Experiment(**first, method='ema_sd', options={'horizon': 0.25})\n"
    )
    assert main(["sweep", f"{recipe}:study", "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    text = [[cell.strip() for cell in row] for row in rows]
    swept: dict[str, str] = {}
    number = ""
    for row in text:
        number = row[1] or number
        swept[number] = f"{swept.get(number, '')} {row[3]}".strip()
    assert "model tiny-28" in swept["0"]
    assert swept["1"] == "seed 2, lr 3e-06"
    assert swept["2"] == "method ema_sd, horizon 0.25"
