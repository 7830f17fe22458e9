"""Progress without a terminal: one line a step, and no accuracy of an earlier step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracer.api.terminal import Display
from tracer.cli.app import main
from tracer.training.loop import Report


def test_an_accuracy_is_shown_once_with_its_step_and_count(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("tracer") as display:
        display.show(Report(0, 40, accuracy=0.1, images=102))
        display.show(Report(20, 40, loss=1.0, gap=-1e-9, accuracy=0.157, images=102))
        display.show(Report(30, 40, loss=0.9, gap=-1e-9))
    first, second, third = capsys.readouterr().out.splitlines()
    assert "held-out 10.0% of 102 at step 0" in first
    assert "held-out 15.7% of 102 at step 20" in second
    assert "held-out" not in third
    assert "loss 0.900  teacher gap 0.0000" in third


def test_each_step_has_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", "digits", "--model", "tiny-28", "--pretrained", "none", "--device", "cpu"]
    flags += ["--batch", "8", "--steps", "12", "--workers", "0", "--out", str(tmp_path / "run")]
    assert main(["train", *flags]) == 0
    steps = re.findall(r"^tracer (\d+)/12", capsys.readouterr().out, re.MULTILINE)
    assert len(steps) == len(set(steps)) > 2
