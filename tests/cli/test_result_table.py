"""The table at the end of `tracer train`: what was measured, with intervals and counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tracer.cli.app import main
from tracer.data.embedded.digits import digits

TINY = ["--model", "tiny-28", "--pretrained", "none", "--device", "cpu", "--batch", "8", "--steps", "1"]


def rows(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, list[str]]:
    """The cells of the table by the name of the row."""
    assert main(["train", *TINY, "--workers", "0", *flags]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    return {name: values for name, *values in cells}


def test_calibration_has_intervals_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(capsys, "--data", "digits", "--out", str(tmp_path / "run"))
    before, after, images = table["calibration error (ECE)"]
    assert " ± " in before
    assert " ± " in after
    assert images == table["held-out accuracy"][-1]


def test_captions_are_not_called_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = digits("train")
    images = np.stack([np.asarray(examples.images[i]) for i in range(40)])
    np.savez(tmp_path / "pairs.npz", images=images, captions=np.array([f"picture {i}" for i in range(40)]))
    table = rows(capsys, "--data", str(tmp_path / "pairs.npz"), "--out", str(tmp_path / "run"))
    assert list(table) == ["held-out caption R@1"]
