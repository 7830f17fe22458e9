"""What a model cuts of captions and prompts is said before it trains, and by `check`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tracer.cli.app import main
from tracer.core.command_line import command_line
from tracer.models.student import load
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.training.setup import text_notices

LONG = 3  # captions of more than 16 tokens


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty images with captions and labels, as NumPy archive."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.npz"
    captions = [f"picture {i}" + " of a dog" * 8 * (i < LONG) for i in range(40)]
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28), dtype=np.uint8)
    np.savez(
        path,
        images=images,
        captions=np.array(captions),
        labels=np.array(["red dog", "cat that sits on a wall by the sea"] * 20),
    )
    return path


@pytest.mark.parametrize(
    ("method", "told"), [("flyp", True), ("tracer", True), ("zeroshot", True), ("ft", False)]
)
def test_captions_count_where_they_are_used(method: str, told: bool, pairs: Path, minute_model: Path) -> None:
    settled = plan(
        Experiment(
            method=method,
            data=str(pairs),
            held_out=str(pairs),
            model=str(minute_model),
            pretrained="none",
            batch=8,
        )
    )
    notices = text_notices(settled, load(str(minute_model)))
    (captions,) = [each for each in notices if "captions" in each] or [""]
    assert captions == told * (
        f"{LONG} of 40 captions ({LONG / 40:.1%}) are longer than the 16 tokens of minute and will be cut"
    )
    (prompts,) = [each for each in notices if "prompts" in each]
    assert " prompts of class names (" in prompts


def test_training_says_it_first(
    pairs: Path, minute: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model", minute, "--pretrained", "none", "--steps", "1", "--batch", "8", "--device", "cpu"]
    words = ["train", "flyp", "--data", str(pairs), *flags, "--workers", "0", "--out", str(tmp_path / "run")]
    assert main([*words, "--templates", "name"]) == 0
    said = capsys.readouterr().out
    assert " of 32 captions (" in said
    assert said.index("will be cut") < said.index("flyp ")
    assert "prompts of class names" not in said


def test_check_counts_for_the_model_that_is_named(
    pairs: Path, minute: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(pairs)]) == 0
    usual = " ".join(capsys.readouterr().out.split())
    assert "in each caption, for ViT-B-16: " in usual
    assert "will be cut" not in usual
    assert main(["check", str(pairs), "--model", minute]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "are longer than the 16 tokens of " in said
    assert command_line("train", "--data", pairs, "--model", minute) in said
    assert main(["check", str(pairs), "--model", "ViT-B-61"]) == 2
    assert "did you mean ViT-B-16" in capsys.readouterr().err


def test_check_says_that_a_tokenizer_is_out_of_reach(
    pairs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from tracer.models import download

    monkeypatch.setattr(download, "unreachable", lambda url: "nothing answers")
    monkeypatch.setattr(download.constants, "HF_HUB_CACHE", str(tmp_path))
    for model in ("hf-hub:timm/ViT-B-16-SigLIP", "ViT-B-16-SigLIP"):
        assert main(["check", str(pairs), "--model", model]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "tokens not counted: " in said
        assert "not on this machine" in said
