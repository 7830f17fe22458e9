"""A run that was stopped and goes on is one curve in TensorBoard, the log's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from methods.test_every_method import interrupted

from tracer.cli.app import main
from tracer.core.teachers import WMA, replay
from tracer.runs.experiment import Experiment
from tracer.runs.record import read


def test_a_resumed_run_is_one_curve(
    experiment: Callable[..., Experiment], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    folder = tmp_path / "run"
    interrupted(experiment("tracer"), folder, after=2)
    assert main(["resume", str(folder), "--device", "cpu", "--log", "tensorboard"]) == 0
    assert "tracer: goes on from step 2\n" in capsys.readouterr().out
    found = reading.EventAccumulator(str(folder / "sinks" / "tensorboard")).Reload()
    curve = [(event.step, event.value) for event in found.Scalars("train/loss")]
    assert [step for step, _ in curve] == [1, 2, 3]
    assert curve == [
        (line["step"], pytest.approx(line["loss"])) for line in read(folder / "log.jsonl", "train")
    ]
    ages = [event.value for event in found.Scalars("train/teacher_age")]
    assert ages == pytest.approx([replay(WMA(), step, 3)[0] for step in (1, 2, 3)])
    assert [event.step for event in found.Scalars("result/after/accuracy")] == [3]
