"""Answers of `tracer eval` that are replaced: those to another question of the same name are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tracer.cli.app import main


def test_scores_of_other_data_with_the_same_name_are_not_replaced_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for place in ("day/test", "night/test"):
        for name in ("cat", "dog"):
            (tmp_path / place / name).mkdir(parents=True)
            pixels = rng.integers(0, 256, (28, 28, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / place / name / "1.png")

    def said(data: str) -> str:
        model = ["tiny-28", "--pretrained", "none", "--templates", "name", "--device", "cpu"]
        assert main(["eval", *model, "--data", data, "--out", str(tmp_path / "out")]) == 0
        return " ".join(capsys.readouterr().err.split())

    day, night = str(tmp_path / "day" / "test"), str(tmp_path / "night" / "test")
    assert "replaced" not in said(day)
    assert "replaced" not in said(day), "the same again"
    told = f"what {tmp_path / 'out'} holds of test is replaced: it is of other images"
    assert told in said(night)
    assert "replaced" not in said(f"id={day}"), "by its whole name"
